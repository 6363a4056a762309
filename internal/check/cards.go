package check

import (
	"fmt"
	"slices"

	"railhead/internal/inventory"
)

// isPF accepts physical functions of this namespace.
func isPF(d *inventory.Device) bool { return d.Kind == inventory.PF && here(d) }

func speedBelowCard(n *Node, _ Wishes) []Finding {
	var findings []Finding
	refs := n.ports(isPF)
	for _, r := range refs {
		if r.port.State != "ACTIVE" || r.port.Gigabits == 0 {
			continue
		}
		could, source := nominal(r.port.MaxGigabits), "the port supports"
		if peer := fastestPeer(refs, r); peer != nil && peer.port.Gigabits > could {
			could, source = peer.port.Gigabits, fmt.Sprintf("%s, the same model, runs at", peer.device.RDMA.Name)
		}
		if r.port.Gigabits >= could {
			continue
		}
		f := Finding{
			Severity: Warning,
			ID:       "speed-below-card",
			Object:   r.String(),
			Seen:     fmt.Sprintf("runs at %g Gb/s, %s %g Gb/s", r.port.Gigabits, source, could),
			Why:      "a collective over all rails is as fast as its slowest rail",
			Mend:     []string{"ethtool " + r.port.Netdev + " # speeds that both ends offer; then cable, transceiver, switch port"},
		}
		if r.port.LinkLayer == inventory.InfiniBand {
			f.Mend = []string{fmt.Sprintf("iblinkinfo -C %s -P %d -l # speed and width of both ends; then cable, switch port", r.device.RDMA.Name, r.port.Number)}
			if r.port.Lanes > 0 {
				f.Seen += fmt.Sprintf(" (%dX %s)", r.port.Lanes, r.port.Speed)
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// nominal is the speed that a port is sold with: ConnectX-3 lists 56 Gb/s, a
// mode that only some switches of its maker speak.
func nominal(gigabits float64) float64 {
	if gigabits == 56 {
		return 40
	}
	return gigabits
}

// fastestPeer finds the fastest port of the same model. The kernel does not
// tell what an InfiniBand port could do, its peers do.
func fastestPeer(refs []portRef, r portRef) *portRef {
	var fastest *portRef
	for i := range refs {
		p := &refs[i]
		if p.device.RDMA.BoardID != r.device.RDMA.BoardID || p.device.PCI.Device != r.device.PCI.Device ||
			p.port.LinkLayer != r.port.LinkLayer || p.device.ID == r.device.ID {
			continue
		}
		if fastest == nil || p.port.Gigabits > fastest.port.Gigabits {
			fastest = p
		}
	}
	return fastest
}

func pcieBelowCard(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for i := range n.Inventory.Devices {
		d := &n.Inventory.Devices[i]
		if d.Kind != inventory.PF || d.RDMA == nil {
			continue
		}
		link, could := d.PCI.Link, d.PCI.LinkMax
		if link.Lanes == 0 || link.GigaTransfers == 0 || link.Lanes >= could.Lanes && link.GigaTransfers >= could.GigaTransfers {
			continue
		}
		findings = append(findings, Finding{
			Severity: Warning,
			ID:       "pcie-below-card",
			Object:   fmt.Sprintf("%s (%s)", d.RDMA.Name, d.ID),
			Seen: fmt.Sprintf("PCIe link runs at %g GT/s x%d, the card can do %g GT/s x%d",
				link.GigaTransfers, link.Lanes, could.GigaTransfers, could.Lanes),
			Why:  "the PCIe link is the bottleneck between the network and memory or GPU",
			Mend: []string{fmt.Sprintf("lspci -vv -s %s | grep -e LnkCap -e LnkSta # then slot, riser, bifurcation in the BIOS, reseating", d.ID)},
		})
	}
	return findings
}

// The largest packet that RDMA has, and a netdev MTU that lets it through.
const (
	fullRDMAMTU = 4096
	enoughMTU   = 4200
)

func isMTUBelowCard(p *inventory.Port) bool {
	return p.RDMAMTU > 0 && p.RDMAMTU < fullRDMAMTU && p.MaxMTU >= enoughMTU
}

func mtuBelowCard(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.ports(isPF) {
		if !isMTUBelowCard(r.port) {
			continue
		}
		findings = append(findings, Finding{
			Severity: Warning,
			ID:       "mtu-below-card",
			Object:   r.String(),
			Seen: fmt.Sprintf("MTU is %d, so RDMA packets carry %d bytes; the card can do %d, and from %d on they carry %d",
				r.port.MTU, r.port.RDMAMTU, r.port.MaxMTU, enoughMTU, fullRDMAMTU),
			Why:  "small packets cost throughput, and both ends of a connection must agree on the size",
			Mend: []string{fmt.Sprintf("ip link set dev %s mtu %d # on every node and, with room for headers, on the switches", r.port.Netdev, min(r.port.MaxMTU, 9000))},
		})
	}
	return findings
}

// mtuDiffers finds rails whose MTU is not that of most rails.
func mtuDiffers(n *Node, _ Wishes) []Finding {
	refs := slices.DeleteFunc(n.ports(isPF), func(r portRef) bool {
		return r.device.Rail == nil || r.port.RDMAMTU == 0 || r.port.State != "ACTIVE"
	})
	counts := map[int]int{}
	common := 0
	for _, r := range refs {
		counts[r.port.MTU]++
		if counts[r.port.MTU] > counts[common] || counts[r.port.MTU] == counts[common] && r.port.MTU > common {
			common = r.port.MTU
		}
	}
	var findings []Finding
	for _, r := range refs {
		if r.port.MTU == common || isMTUBelowCard(r.port) {
			continue
		}
		findings = append(findings, Finding{
			Severity: Warning,
			ID:       "mtu-differs",
			Object:   r.String(),
			Seen:     fmt.Sprintf("MTU is %d, that of %s is %d", r.port.MTU, plural(counts[common], "other rail"), common),
			Why:      "peers on the same rail of other nodes expect one MTU: larger packets are dropped without a word",
			Mend:     []string{fmt.Sprintf("ip link set dev %s mtu %d", r.port.Netdev, common)},
		})
	}
	return findings
}

func firmwareDiffers(n *Node, _ Wishes) []Finding {
	versions := map[string]map[string]int{} // board → firmware → cards
	refs := n.ports(isPF)
	for _, r := range refs {
		board := r.device.RDMA.BoardID
		if versions[board] == nil {
			versions[board] = map[string]int{}
		}
		versions[board][r.device.RDMA.Firmware]++
	}
	var findings []Finding
	for _, r := range refs {
		board := r.device.RDMA.BoardID
		most := mostCommon(versions[board])
		if board == "" || r.device.RDMA.Firmware == most || r.port.Number > 1 {
			continue
		}
		findings = append(findings, Finding{
			Severity: Info,
			ID:       "firmware-differs",
			Object:   fmt.Sprintf("%s (%s)", r.device.RDMA.Name, r.device.ID),
			Seen:     fmt.Sprintf("firmware is %s, that of %s with board %s is %s", r.device.RDMA.Firmware, plural(versions[board][most], "port"), board, most),
			Why:      "cards that differ in firmware differ in behaviour under congestion and in counters",
			Mend:     []string{fmt.Sprintf("mstflint -d %s query # then bring all cards to one version", r.device.ID)},
		})
	}
	return findings
}

// mostCommon returns the most frequent value, and of equals the greatest.
func mostCommon(counts map[string]int) string {
	best := ""
	for value, count := range counts {
		if count > counts[best] || count == counts[best] && value > best {
			best = value
		}
	}
	return best
}
