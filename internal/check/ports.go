package check

import (
	"fmt"
	"strings"

	"railhead/internal/inventory"
)

// linkLayer finds cards whose ports run another link layer than most ports of
// the same model do: multi-protocol cards come up as the firmware is set.
func linkLayer(n *Node, _ Wishes) []Finding {
	models := map[string]map[string]int{} // device ID → link layer → ports
	refs := n.ports(func(d *inventory.Device) bool { return d.Kind == inventory.PF })
	for _, r := range refs {
		id := r.device.PCI.Device
		if models[id] == nil {
			models[id] = map[string]int{}
		}
		models[id][r.port.LinkLayer]++
	}
	var findings []Finding
	for _, r := range refs {
		counts := models[r.device.PCI.Device]
		other := inventory.Ethernet
		if r.port.LinkLayer == inventory.Ethernet {
			other = inventory.InfiniBand
		}
		if counts[other] <= counts[r.port.LinkLayer] {
			continue
		}
		findings = append(findings, Finding{
			Severity: Warning,
			ID:       "link-layer",
			Object:   r.String(),
			Seen:     fmt.Sprintf("link layer is %s, while %s of the same model run %s", r.port.LinkLayer, plural(counts[other], "port"), other),
			Why:      "ports of different link layers cannot talk to each other",
			Mend: []string{
				fmt.Sprintf("mstconfig -d %s set LINK_TYPE_P%d=%d", r.device.PCI.Address, max(r.port.Number, pciFunction(r.device)+1), linkType(other)),
				"reboot",
			},
		})
	}
	return findings
}

// linkType is the number that a ConnectX card's firmware has for a link layer.
func linkType(layer string) int {
	if layer == inventory.InfiniBand {
		return 1
	}
	return 2
}

// pciFunction is the function number of a PCI address, which on dual-port
// cards is the port.
func pciFunction(d *inventory.Device) int {
	return int(d.PCI.Address[len(d.PCI.Address)-1] - '0')
}

func portDown(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.ports(notVF) {
		if r.port.State == "ACTIVE" || r.port.State == "ACTIVE_DEFER" {
			continue
		}
		f := Finding{
			Severity: Error,
			ID:       "port-down",
			Object:   r.String(),
			Seen:     fmt.Sprintf("state %s, physical state %s", r.port.State, r.port.PhysState),
			Why:      "no RDMA traffic passes through a port that is not ACTIVE",
		}
		if r.port.LinkLayer == inventory.InfiniBand {
			mendInfiniBandPort(&f, r)
		} else {
			mendEthernetPort(&f, r)
		}
		findings = append(findings, f)
	}
	return findings
}

func mendInfiniBandPort(f *Finding, r portRef) {
	if r.port.PhysState != "LINK_UP" {
		f.Mend = []string{fmt.Sprintf("ibstat %s %d # no link: cable, transceiver, switch port", r.device.RDMA.Name, r.port.Number)}
		return
	}
	f.Seen += "; the link is up and no subnet manager has set the port up"
	f.Mend = []string{
		fmt.Sprintf("sminfo -C %s -P %d # is there a subnet manager on this fabric?", r.device.RDMA.Name, r.port.Number),
		fmt.Sprintf("opensm -B -g 0x%s # none? One host of the fabric may run it", strings.ReplaceAll(r.port.GUID, ":", "")),
	}
}

func mendEthernetPort(f *Finding, r portRef) {
	netdev := r.netdev()
	switch {
	case netdev == nil:
		f.Mend = []string{"rdma link show " + fmt.Sprintf("%s/%d # which netdev carries it?", r.device.RDMA.Name, r.port.Number)}
	case !netdev.Up:
		f.Seen += fmt.Sprintf("; %s is set down", netdev.Name)
		f.Mend = []string{"ip link set dev " + netdev.Name + " up"}
	case !netdev.Running:
		f.Seen += fmt.Sprintf("; %s has no carrier", netdev.Name)
		f.Mend = []string{"ethtool " + netdev.Name + " # cable, transceiver, switch port; speed and FEC must match the switch"}
	default:
		f.Seen += fmt.Sprintf("; %s is up and has a carrier", netdev.Name)
		f.Mend = []string{"dmesg | grep -e " + r.device.RDMA.Name + " -e " + r.device.ID}
	}
}

// portWithoutNetdev finds RoCE ports whose netdev is not where they are.
func portWithoutNetdev(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.ports(anyDevice) {
		if r.port.LinkLayer != inventory.Ethernet || r.port.Netdev != "" {
			continue
		}
		f := Finding{
			Severity: Warning,
			ID:       "port-without-netdev",
			Object:   r.String(),
			Seen:     "its netdev is not in the same network namespace",
			Why:      "without its netdev a RoCE port has no usable GID: connections through it fail",
			Mend:     []string{"# move the netdev and the RDMA device into the same namespace"},
		}
		if where := strayNetdev(r); where != nil {
			f.Seen = fmt.Sprintf("its netdev %s is in %s, the RDMA device is not", where.Name, where.NetNS)
			f.Mend = []string{fmt.Sprintf("rdma dev set %s netns %s # in exclusive mode", r.device.RDMA.Name, where.NetNS.Path)}
		}
		if n.Inventory.System.NetNSMode == shared {
			f.Severity = Info
			f.Why = "in shared mode a netdev that was moved into a pod serves that pod alone"
			f.Mend = nil
		}
		findings = append(findings, f)
	}
	return findings
}

func strayNetdev(r portRef) *inventory.Netdev {
	for i := range r.device.Netdevs {
		if n := &r.device.Netdevs[i]; n.NetNS != nil {
			return n
		}
	}
	return nil
}

func guidZero(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for i := range n.Inventory.Devices {
		d := &n.Inventory.Devices[i]
		if d.RDMA == nil || !isStandard(d) || d.RDMA.NodeGUID == "" || strings.Trim(d.RDMA.NodeGUID, "0:") != "" {
			continue
		}
		f := Finding{
			Severity: Error,
			ID:       "guid-zero",
			Object:   d.RDMA.Name,
			Seen:     "node GUID is " + d.RDMA.NodeGUID,
			Why:      "connections by rdma_cm fail, and tools cannot tell devices without a GUID apart",
			Mend:     []string{fmt.Sprintf("mstflint -d %s query # does the firmware have a GUID?", d.ID)},
		}
		if d.Kind == inventory.VF {
			f.Mend = n.setVFGUID(d)
		}
		findings = append(findings, f)
	}
	return findings
}

// setVFGUID gives a VF an address through its PF; the driver takes it over, as
// GUID too, when it binds the VF the next time.
func (n *Node) setVFGUID(d *inventory.Device) []string {
	pf, number, address := "PF_NETDEV", 0, "MAC"
	if d.VF != nil {
		number = *d.VF
	}
	if parent, ok := n.Inventory.Device(d.Parent); ok && len(parent.Netdevs) > 0 {
		pf = parent.Netdevs[0].Name
	}
	if len(d.Netdevs) > 0 {
		address = d.Netdevs[0].Address
	}
	set := fmt.Sprintf("ip link set dev %s vf %d mac %s", pf, number, address)
	if len(d.RDMA.Ports) > 0 && d.RDMA.Ports[0].LinkLayer == inventory.InfiniBand {
		set = fmt.Sprintf("ip link set dev %s vf %d node_guid GUID && ip link set dev %s vf %d port_guid GUID", pf, number, pf, number)
	}
	return []string{
		set,
		fmt.Sprintf("echo %s > /sys/bus/pci/drivers/%s/unbind", d.ID, d.PCI.Driver),
		fmt.Sprintf("echo %s > /sys/bus/pci/drivers/%s/bind", d.ID, d.PCI.Driver),
	}
}
