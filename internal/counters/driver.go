package counters

import (
	"railhead/internal/inventory"
)

// driverName is what the tables call a driver, by the module that makes the
// RDMA device.
func driverName(module string) string {
	switch module {
	case "mlx5_ib":
		return "mlx5"
	case "mlx4_ib":
		return "mlx4"
	case "mana_ib":
		return "mana"
	case "ionic_rdma":
		return "ionic"
	case "hns_roce_hw_v2":
		return "hns"
	}
	return module
}

// Driver is what the tables call the driver of a device's RDMA: "mlx5",
// "bnxt_re", "rxe", …; empty where it is not known.
func Driver(d *inventory.Device) string {
	switch {
	case d.Kind == inventory.Virtual && d.RDMA != nil && d.RDMA.Protocol == "iw":
		return "siw"
	case d.Kind == inventory.Virtual:
		return "rxe"
	case d.PCI == nil:
		return ""
	}
	driver, ok := inventory.DriverOf(d.PCI.Driver)
	if !ok {
		return ""
	}
	return driverName(driver.RDMA)
}
