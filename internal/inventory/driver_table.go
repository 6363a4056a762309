package inventory

// gpuClass is a PCI class of GPUs.
type gpuClass struct {
	class  uint32 // without its programming interface
	vendor uint16 // 0 for any
}

// Driver names the two halves of an RDMA driver.
type Driver struct {
	Net    string // the driver that binds the PCI function
	RDMA   string // the kernel module that makes the RDMA device; the same for a driver without netdev
	Always bool   // whether every function that Net binds carries RDMA
}

// drivers lists the kernel's RDMA drivers by the driver that binds the PCI
// function. A function of a listed driver is worth listing even while it has
// no RDMA device; whether it must have one, Always tells.
var drivers = []Driver{
	{Net: "mlx5_core", RDMA: "mlx5_ib", Always: true},
	{Net: "mlx4_core", RDMA: "mlx4_ib", Always: true},
	{Net: "bnxt_en", RDMA: "bnxt_re"},
	{Net: "ice", RDMA: "irdma"},
	{Net: "i40e", RDMA: "irdma"},
	{Net: "idpf", RDMA: "irdma"},
	{Net: "iavf", RDMA: "irdma"},
	{Net: "ionic", RDMA: "ionic_rdma"},
	{Net: "hns3", RDMA: "hns_roce_hw_v2"},
	{Net: "cxgb4", RDMA: "iw_cxgb4"},
	{Net: "qede", RDMA: "qedr"},
	{Net: "mana", RDMA: "mana_ib"},
	{Net: "efa", RDMA: "efa", Always: true},
	{Net: "erdma", RDMA: "erdma", Always: true},
	{Net: "irdma", RDMA: "irdma", Always: true},
	{Net: "hfi1", RDMA: "hfi1", Always: true},
	{Net: "vmw_pvrdma", RDMA: "vmw_pvrdma", Always: true},
	{Net: "bng_en", RDMA: "bng_re"},
}

// cards lists functions that carry RDMA by vendor and device, so that a card is
// found without a driver too. Mellanox network functions all do; the first row
// that matches counts.
var cards = []struct {
	vendor      string
	first, last string // devices
	net         string // the driver that binds them
}{
	{vendor: "15b3", first: "1002", last: "1010", net: "mlx4_core"},
	{vendor: "15b3", first: "0000", last: "ffff", net: "mlx5_core"},
}

// virtualFunctions are the devices of VFs, which in a virtual machine have no
// PF to tell.
var virtualFunctions = map[string][]string{ // vendor → devices
	"15b3": {"1004", "1014", "1016", "1018", "101a", "101c", "101e", "a2d3"},
	"8086": {"10ca", "154c", "1889"},
	"14e4": {"16dc", "1806", "1807", "1808", "1809"},
}

// gpuClasses lists what counts as a GPU by PCI class and vendor: every 3D
// controller and accelerator, but of the display functions only those of the
// makers of GPUs, because a management controller has a display function too.
var gpuClasses = []gpuClass{
	{class: 0x0302},
	{class: 0x1200},
	{class: 0x0300, vendor: 0x10de},
	{class: 0x0300, vendor: 0x1002},
}
