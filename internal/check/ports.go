package check

import (
	"fmt"
	"strings"

	"railhead/internal/inventory"
)

// linkLayerWanted finds rails that run another link layer than is wanted:
// multi-protocol cards come up as their firmware is set.
func linkLayerWanted(n *Node, w Wishes) []Finding {
	if w.LinkLayer == "" {
		return nil
	}
	var findings []Finding
	for _, r := range n.ports(isRail) {
		if r.port.LinkLayer == w.LinkLayer {
			continue
		}
		findings = append(findings, Finding{
			Severity: Error,
			ID:       "link-layer",
			Object:   r.String(),
			Seen:     fmt.Sprintf("link layer is %s, wanted is %s", r.port.LinkLayer, w.LinkLayer),
			Why:      "ports of different link layers cannot talk to each other",
			Mend:     setLinkLayer(r, w.LinkLayer),
		})
	}
	return findings
}

// linkLayerDiffers finds rails that run another link layer than most ports of
// the same board do.
func linkLayerDiffers(n *Node, w Wishes) []Finding {
	if w.LinkLayer != "" {
		return nil
	}
	boards := map[string]map[string]int{} // board → link layer → ports
	refs := n.ports(isRail)
	for _, r := range refs {
		if boards[board(r)] == nil {
			boards[board(r)] = map[string]int{}
		}
		boards[board(r)][r.port.LinkLayer]++
	}
	var findings []Finding
	for _, r := range refs {
		most := mostCommon(boards[board(r)])
		if r.port.LinkLayer == most {
			continue
		}
		findings = append(findings, Finding{
			Severity: Warning,
			ID:       "link-layer",
			Object:   r.String(),
			Seen:     fmt.Sprintf("link layer is %s, while %s of the same board run %s", r.port.LinkLayer, plural(boards[board(r)][most], "port"), most),
			Why:      "ports of different link layers cannot talk to each other",
			Mend:     setLinkLayer(r, most),
		})
	}
	return findings
}

// board tells which cards are alike.
func board(r portRef) string {
	return r.device.PCI.Vendor + ":" + r.device.PCI.Device + " " + r.device.RDMA.BoardID
}

func setLinkLayer(r portRef, layer string) []string {
	if !isMellanox(r.device) {
		return []string{"# this card has one link layer: use another for this rail"}
	}
	number := 2 // Ethernet, as the firmware counts
	if layer == inventory.InfiniBand {
		number = 1
	}
	return []string{
		fmt.Sprintf("mstconfig -d %s set LINK_TYPE_P%d=%d", r.device.PCI.Address, max(r.port.Number, pciFunction(r.device)+1), number),
		"reboot",
	}
}

// pciFunction is the function number of a PCI address, which on dual-port
// cards is the port.
func pciFunction(d *inventory.Device) int {
	return int(d.PCI.Address[len(d.PCI.Address)-1] - '0')
}

func portDown(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.ports(isOwn) {
		if r.port.State == "ACTIVE" || r.port.State == "ACTIVE_DEFER" {
			continue
		}
		f := Finding{
			Severity: Warning,
			ID:       "port-down",
			Object:   r.String(),
			Seen:     fmt.Sprintf("state %s, physical state %s", r.port.State, r.port.PhysState),
			Why:      "no RDMA traffic passes through a port that is not ACTIVE",
		}
		switch r.port.LinkLayer {
		case inventory.InfiniBand:
			mendInfiniBandPort(&f, r)
		case inventory.Ethernet:
			mendEthernetPort(&f, r)
		default:
			f.Mend = []string{"dmesg | grep " + r.device.ID}
		}
		findings = append(findings, f)
	}
	return findings
}

func mendInfiniBandPort(f *Finding, r portRef) {
	see := fmt.Sprintf("ibstat %s %d", r.device.RDMA.Name, r.port.Number)
	if r.port.PhysState != "LINK_UP" {
		f.Mend = []string{see + " # no link: cable, transceiver, switch port"}
		return
	}
	f.Severity = Error
	f.Seen += "; the link is up and no fabric manager has set the port up"
	if r.device.RDMA.Protocol == "opa" {
		f.Mend = []string{"opainfo", "systemctl status opafm # on the host that manages the fabric"}
		return
	}
	f.Mend = []string{
		see + " # SM lid 0: no subnet manager has found this port",
		fmt.Sprintf("iblinkinfo -C %s -P %d -D 0 -l # which switch is it on? Is there a subnet manager?", r.device.RDMA.Name, r.port.Number),
	}
	if r.port.GUID != "" {
		f.Mend = append(f.Mend, fmt.Sprintf("opensm -B -g 0x%s # one host may be it, but never where UFM or a switch manages the fabric",
			strings.ReplaceAll(r.port.GUID, ":", "")))
	}
}

// mendEthernetPort also tells a port that is not used from one that is missed:
// dual-port cards often have one of the first.
func mendEthernetPort(f *Finding, r portRef) {
	netdev := r.netdev()
	switch {
	case netdev == nil:
		f.Mend = []string{fmt.Sprintf("rdma link show %s/%d # which netdev carries it?", r.device.RDMA.Name, r.port.Number)}
		return
	case !netdev.Up:
		f.Seen += fmt.Sprintf("; %s is set down", netdev.Name)
		f.Mend = []string{"ip link set dev " + netdev.Name + " up" + lasting}
		f.Severity = Info
	case !netdev.Running:
		f.Seen += fmt.Sprintf("; %s has no carrier", netdev.Name)
		f.Mend = []string{"ethtool " + netdev.Name + " # cable, transceiver, switch port; speed and FEC must match the switch"}
	default:
		f.Seen += fmt.Sprintf("; %s is up and has a carrier", netdev.Name)
		f.Mend = []string{"dmesg | grep -e " + r.device.RDMA.Name + " -e " + r.device.ID}
		f.Severity = Error
	}
	if len(netdev.Addresses) > 0 || r.device.Kind == inventory.Virtual {
		f.Severity = Error
	}
}

// lasting says of a command that its effect ends with the next boot.
const lasting = " # and in the network configuration, or the next boot undoes it"

// bondMemberDown finds bonds that lost a member. Their RDMA device stays
// ACTIVE, at less speed.
func bondMemberDown(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, d := range n.devices(func(d *inventory.Device) bool { return d.Bond != nil }) {
		for _, m := range d.Netdevs {
			if m.Master != d.Bond.Name || m.Running {
				continue
			}
			findings = append(findings, Finding{
				Severity: Warning,
				ID:       "bond-member-down",
				Object:   fmt.Sprintf("%s (%s)", m.Name, d.ID),
				Seen:     fmt.Sprintf("%s of %s has no carrier", m.Name, d.Bond.Name),
				Why:      "the bond's RDMA device goes on without it, at less speed and with nothing in reserve",
				Mend:     []string{"ethtool " + m.Name + " # cable, transceiver, switch port", "cat /proc/net/bonding/" + d.Bond.Name},
			})
		}
	}
	return findings
}

// portWithoutNetdev finds RoCE ports whose netdev is not where they are. In
// shared mode that is how a pod has a netdev of its own.
func portWithoutNetdev(n *Node, _ Wishes) []Finding {
	if n.Inventory.System.NetNSMode == shared {
		return nil
	}
	var findings []Finding
	for _, r := range n.ports(isStandard) {
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
			f.Seen = fmt.Sprintf("its netdev %s is in %s, the RDMA device is not", where.Name, where.NetNS.Name())
			f.Mend = []string{fmt.Sprintf("rdma dev set %s netns %s", r.device.RDMA.Name, where.NetNS.Name())}
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
