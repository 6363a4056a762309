package check

import (
	"fmt"

	"railhead/internal/inventory"
)

// loadModule is how a module is loaded now and at every boot.
func loadModule(module string) []string {
	return []string{
		"modprobe " + module,
		fmt.Sprintf("echo %s > /etc/modules-load.d/%s.conf", module, module),
	}
}

func noRDMAHardware(n *Node, _ Wishes) []Finding {
	if len(n.Inventory.Devices) > 0 {
		return nil
	}
	seen := "no RDMA device, and no PCI function whose driver could make one"
	if len(n.Inventory.Problems) > 0 {
		seen += "; but not all could be read"
	}
	return []Finding{{
		Severity: Error,
		ID:       "no-rdma-hardware",
		Object:   "node",
		Seen:     seen,
		Why:      "without an RDMA device no pod on this node can use RDMA",
		Mend: []string{
			"lspci -nn -d ::0200 && lspci -nn -d ::0207 # is the card there? If not: slot, BIOS, or the virtual machine's passthrough",
			"modprobe rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV # software RDMA on a netdev, for tests",
		},
	}}
}

func driverMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, d := range n.devices(func(d *inventory.Device) bool { return d.IsRoot() && d.PCI.Driver == "" }) {
		f := Finding{
			Severity: Error,
			ID:       "driver-missing",
			Object:   d.ID,
			Seen:     fmt.Sprintf("no driver is bound to %s:%s", d.PCI.Vendor, d.PCI.Device),
			Why:      "a card without its driver has neither netdev nor RDMA device",
		}
		if driver := inventory.CardDriver(d.PCI.Vendor, d.PCI.Device); driver != "" {
			f.Mend = loadModule(driver)
		}
		f.Mend = append(f.Mend, "dmesg | grep "+d.ID+" # why the driver gave up, if it is loaded")
		findings = append(findings, f)
	}
	return findings
}

// moduleMissing has one finding a module, not one a card.
func moduleMissing(n *Node, _ Wishes) []Finding {
	without := map[string][]string{}
	var order []inventory.Driver
	for _, d := range n.devices(anyDevice) {
		driver, ok := driverWithoutRDMA(d)
		if !ok || n.Modules[driver.RDMA].Loaded {
			continue
		}
		if without[driver.RDMA] == nil {
			order = append(order, driver)
		}
		without[driver.RDMA] = append(without[driver.RDMA], d.ID)
	}
	var findings []Finding
	for _, driver := range order {
		f := Finding{
			Severity: Error,
			ID:       "module-missing",
			Object:   "module " + driver.RDMA,
			Seen: fmt.Sprintf("%s is not loaded, and %s bound by %s without RDMA device: %s", driver.RDMA,
				plural(len(without[driver.RDMA]), "function"), driver.Net, firstFew(without[driver.RDMA])),
			Why:  "the netdev works without it, RDMA does not",
			Mend: loadModule(driver.RDMA),
		}
		if !driver.Always {
			f.Why = "if these cards can do RDMA, this module makes their RDMA devices"
			if n.hasRDMA() {
				f.Severity = Info
			}
		}
		findings = append(findings, f)
	}
	return findings
}

func (n *Node) hasRDMA() bool {
	return len(n.devices(func(d *inventory.Device) bool { return d.RDMA != nil })) > 0
}

// driverWithoutRDMA tells which driver should have made an RDMA device for a
// function and did not.
func driverWithoutRDMA(d *inventory.Device) (inventory.Driver, bool) {
	if d.RDMA != nil || d.PCI == nil || d.CarriedBy != "" {
		return inventory.Driver{}, false
	}
	return inventory.DriverOf(d.PCI.Driver)
}

func rdmaDeviceMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, d := range n.devices(anyDevice) {
		driver, ok := driverWithoutRDMA(d)
		if !ok || !driver.Always || !n.Modules[driver.RDMA].Loaded || n.mayBeInPod(d) {
			continue
		}
		f := Finding{
			Severity: Error,
			ID:       "rdma-device-missing",
			Object:   d.ID,
			Seen:     fmt.Sprintf("%s is loaded, but this function has no RDMA device in any network namespace that can be seen", driver.RDMA),
			Why:      "pods that are given this function get no RDMA",
			Mend:     []string{"dmesg | grep " + d.ID + " # what the driver said"},
		}
		if !d.IsRoot() {
			f.Severity = Warning
		}
		if driver.Net == "mlx5_core" {
			handle := devlinkHandle(d)
			f.Mend = append(f.Mend,
				fmt.Sprintf("devlink dev param show %s name enable_rdma # RDMA may be switched off", handle),
				fmt.Sprintf("devlink dev param set %s name enable_rdma value true cmode driverinit && devlink dev reload %s # takes the netdev down", handle, handle))
		}
		findings = append(findings, f)
	}
	return findings
}

// devlinkHandle is the name that devlink has for a function.
func devlinkHandle(d *inventory.Device) string {
	if d.Kind == inventory.SF {
		return "auxiliary/" + d.ID
	}
	return "pci/" + d.ID
}

// mayBeInPod tells whether a function's RDMA device may be in another
// namespace, out of our sight: its netdev is in one, or nothing of it is here
// and not all namespaces could be looked into.
func (n *Node) mayBeInPod(d *inventory.Device) bool {
	for _, netdev := range d.Netdevs {
		if netdev.NetNS != nil {
			return true
		}
	}
	return !d.IsRoot() && len(d.Netdevs) == 0 && (len(n.Inventory.Problems) > 0 || n.OtherNetNS == nil)
}
