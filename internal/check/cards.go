package check

import (
	"fmt"
	"slices"

	"railhead/internal/inventory"
)

func speedBelowCard(n *Node, _ Wishes) []Finding {
	var findings []Finding
	refs := n.ports(isCard)
	for _, r := range refs {
		if r.port.State != "ACTIVE" || r.port.Gigabits == 0 {
			continue
		}
		could, source := fastest(refs, r)
		if r.port.Gigabits >= could {
			continue
		}
		f := Finding{
			Severity: orInfo(r.device, Warning),
			ID:       "speed-below-card",
			Object:   r.String(),
			Seen:     fmt.Sprintf("runs at %g Gb/s, %s %g Gb/s", r.port.Gigabits, source, could),
			Why:      "a collective over all rails is as fast as its slowest rail",
			Mend:     []string{"ethtool " + r.port.Netdev + " # speeds that both ends offer; then cable, transceiver, switch port"},
		}
		if r.port.LinkLayer == inventory.InfiniBand {
			f.Mend = []string{fmt.Sprintf("iblinkinfo -C %s -P %d -D 0 -l # speed and width of both ends; then cable, switch port", r.device.RDMA.Name, r.port.Number)}
			if r.port.Lanes > 0 {
				f.Seen += fmt.Sprintf(" (now %dX %s)", r.port.Lanes, r.port.Speed)
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// fastest is the highest speed that a port is known to be able to run at, and
// by what: what its netdev supports, what its model is sold with, or what its
// peers run at. The kernel tells nothing of what an InfiniBand port could do.
func fastest(refs []portRef, r portRef) (gigabits float64, source string) {
	gigabits, source = nominal(r.port.MaxGigabits), "the port supports"
	if model := modelSpeeds[r.device.RDMA.HCAType]; r.port.LinkLayer == inventory.InfiniBand && model > gigabits {
		gigabits, source = model, "cards of type "+r.device.RDMA.HCAType+" can run at"
	}
	for _, p := range refs {
		if board(p) == board(r) && p.port.LinkLayer == r.port.LinkLayer && p.port.Gigabits > gigabits {
			gigabits, source = p.port.Gigabits, p.device.RDMA.Name+", the same board, runs at"
		}
	}
	return gigabits, source
}

// nominal is the speed that a port is sold with: ConnectX-3 lists 56 Gb/s, a
// mode that only some switches of its maker speak.
func nominal(gigabits float64) float64 {
	if gigabits == 56 {
		return 40
	}
	return gigabits
}

// pcieBelowCard warns where the PCIe link is the bottleneck, and tells of links
// that are slower than they could be.
func pcieBelowCard(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, d := range n.devices(func(d *inventory.Device) bool { return d.IsRoot() && d.RDMA != nil }) {
		link, could := d.PCI.Link, d.PCI.LinkMax
		if link.Lanes == 0 || link.GigaTransfers == 0 || link.Lanes >= could.Lanes && link.GigaTransfers >= could.GigaTransfers {
			continue
		}
		f := Finding{
			Severity: orInfo(d, Warning),
			ID:       "pcie-below-card",
			Object:   deviceName(d),
			Seen: fmt.Sprintf("PCIe link runs at %g GT/s x%d, the card can do %g GT/s x%d",
				link.GigaTransfers, link.Lanes, could.GigaTransfers, could.Lanes),
			Why:  fmt.Sprintf("the link carries %.0f Gb/s, less than the network", pcieGigabits(link)),
			Mend: []string{fmt.Sprintf("lspci -vv -s %s | grep -e LnkCap -e LnkSta # then slot, riser, bifurcation in the BIOS, reseating", d.ID)},
		}
		if pcieGigabits(link) >= portGigabits(d) {
			f.Severity = Info
			f.Why = fmt.Sprintf("the link carries %.0f Gb/s, enough for its ports now", pcieGigabits(link))
		}
		findings = append(findings, f)
	}
	return findings
}

// pcieGigabits is what a PCIe link carries each way: the line code takes a
// fifth up to PCIe 2 and 2 bits in 130 from PCIe 3 on.
func pcieGigabits(l inventory.PCILink) float64 {
	code := 128.0 / 130
	if l.GigaTransfers < 8 {
		code = 0.8
	}
	return l.GigaTransfers * float64(l.Lanes) * code
}

// portGigabits is the speed of all ports of a device together.
func portGigabits(d *inventory.Device) float64 {
	sum := 0.0
	for _, p := range d.RDMA.Ports {
		sum += max(p.Gigabits, nominal(p.MaxGigabits))
	}
	return sum
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
	for _, r := range n.ports(isCard) {
		if !isMTUBelowCard(r.port) {
			continue
		}
		findings = append(findings, Finding{
			Severity: orInfo(r.device, Warning),
			ID:       "mtu-below-card",
			Object:   r.String(),
			Seen: fmt.Sprintf("MTU is %d, so RDMA packets carry %d bytes; the card can do %d, and %d is enough for %d bytes",
				r.port.MTU, r.port.RDMAMTU, r.port.MaxMTU, enoughMTU, fullRDMAMTU),
			Why:  "small packets cost throughput, and both ends of a connection must agree on the size",
			Mend: []string{fmt.Sprintf("ip link set dev %s mtu %d # also on every other node and the switches, and in the network configuration, or the next boot undoes it", r.port.Netdev, min(r.port.MaxMTU, 9000))},
		})
	}
	return findings
}

// mtuDiffers finds rails whose MTU is not that of most rails.
func mtuDiffers(n *Node, _ Wishes) []Finding {
	refs := slices.DeleteFunc(n.ports(isRail), func(r portRef) bool {
		return r.port.RDMAMTU == 0 || r.port.State != "ACTIVE"
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
			Mend:     []string{fmt.Sprintf("ip link set dev %s mtu %d", r.port.Netdev, common) + lasting},
		})
	}
	return findings
}

func firmwareDiffers(n *Node, _ Wishes) []Finding {
	versions := map[string]map[string]int{} // board → firmware → cards
	refs := slices.DeleteFunc(n.ports(isCard), func(r portRef) bool { return r.port.Number > 1 || r.device.RDMA.BoardID == "" })
	for _, r := range refs {
		if versions[board(r)] == nil {
			versions[board(r)] = map[string]int{}
		}
		versions[board(r)][r.device.RDMA.Firmware]++
	}
	var findings []Finding
	for _, r := range refs {
		most := mostCommon(versions[board(r)])
		if r.device.RDMA.Firmware == most {
			continue
		}
		f := Finding{
			Severity: Info,
			ID:       "firmware-differs",
			Object:   deviceName(r.device),
			Seen:     fmt.Sprintf("firmware is %s, that of %s with board %s is %s", r.device.RDMA.Firmware, plural(versions[board(r)][most], "card"), r.device.RDMA.BoardID, most),
			Why:      "cards that differ in firmware differ in behaviour under congestion and in counters",
			Mend:     []string{"# bring all cards to one version with their maker's tool"},
		}
		if isMellanox(r.device) {
			f.Mend = []string{fmt.Sprintf("mstflint -d %s query # then bring all cards to one version", r.device.ID)}
		}
		findings = append(findings, f)
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
