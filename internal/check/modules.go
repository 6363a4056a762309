package check

import (
	"fmt"
	"strings"

	"railhead/internal/inventory"
)

// loadModule is how a module is loaded now and at every boot.
func loadModule(module string) []string {
	return []string{
		"modprobe " + module,
		fmt.Sprintf("echo %s > /etc/modules-load.d/%s.conf", module, module),
	}
}

func hardware(n *Node, _ Wishes) []Finding {
	if len(n.Inventory.Devices) > 0 {
		return nil
	}
	return []Finding{{
		Severity: Error,
		ID:       "no-rdma-hardware",
		Object:   "node",
		Seen:     "no RDMA device, and no PCI function whose driver could make one",
		Why:      "without an RDMA device no pod on this node can use RDMA",
		Mend: []string{
			"lspci -nn -d ::0200 && lspci -nn -d ::0207 # is the card there? If not: slot, BIOS, or the virtual machine's passthrough",
			"modprobe rdma_rxe && rdma link add rxe0 type rxe netdev NETDEV # software RDMA on a netdev, for tests",
		},
	}}
}

func driverMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, d := range n.Inventory.Devices {
		if d.Kind != inventory.PF || d.PCI.Driver != "" {
			continue
		}
		findings = append(findings, Finding{
			Severity: Error,
			ID:       "driver-missing",
			Object:   d.ID,
			Seen:     fmt.Sprintf("no driver is bound to %s:%s", d.PCI.Vendor, d.PCI.Device),
			Why:      "a card without its driver has neither netdev nor RDMA device",
			Mend:     append(loadModule("mlx5_core"), "dmesg | grep "+d.ID+" # why the driver gave up, if it is loaded"),
		})
	}
	return findings
}

// rdmaModuleMissing has one finding a module, not one a card.
func rdmaModuleMissing(n *Node, _ Wishes) []Finding {
	without := map[string][]string{}
	var order []inventory.Driver
	for _, d := range n.Inventory.Devices {
		driver, ok := driverWithoutRDMA(&d)
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
			Seen: fmt.Sprintf("%s is not loaded, and %s (%s) bound by %s has no RDMA device", driver.RDMA,
				plural(len(without[driver.RDMA]), "function"), strings.Join(without[driver.RDMA], ", "), driver.Net),
			Why:  "the netdev works without it, RDMA does not",
			Mend: loadModule(driver.RDMA),
		}
		if !driver.Always {
			f.Severity = Info
			f.Why = "if these cards can do RDMA, this module makes their RDMA devices"
		}
		findings = append(findings, f)
	}
	return findings
}

// driverWithoutRDMA tells which driver should have made an RDMA device for a
// function and did not. A member of a bond has none of its own.
func driverWithoutRDMA(d *inventory.Device) (inventory.Driver, bool) {
	if d.RDMA != nil || d.PCI == nil || d.Bond != nil && d.Bond.RDMA != "" {
		return inventory.Driver{}, false
	}
	return inventory.DriverOf(d.PCI.Driver)
}

func rdmaDeviceMissing(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, d := range n.Inventory.Devices {
		driver, ok := driverWithoutRDMA(&d)
		if !ok || !driver.Always || !n.Modules[driver.RDMA].Loaded || inPod(&d) {
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
		if driver.Net == "mlx5_core" {
			f.Mend = append(f.Mend,
				fmt.Sprintf("devlink dev param show pci/%s name enable_roce # RoCE may be switched off", d.ID),
				fmt.Sprintf("devlink dev param set pci/%s name enable_roce value true cmode driverinit && devlink dev reload pci/%s", d.ID, d.ID))
		}
		findings = append(findings, f)
	}
	return findings
}

// inPod tells whether a function's netdev sits in another namespace, so that
// its RDMA device may be there too, out of our sight.
func inPod(d *inventory.Device) bool {
	for _, n := range d.Netdevs {
		if n.NetNS != nil {
			return true
		}
	}
	return false
}

func unreadable(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, p := range append(n.Inventory.Problems, n.Problems...) {
		findings = append(findings, Finding{
			Severity: Info,
			ID:       "unreadable",
			Object:   "node",
			Seen:     p,
			Why:      "what could not be read was not checked",
			Mend:     []string{"# run railhead check as root, in the host's network and PID namespaces"},
		})
	}
	return findings
}
