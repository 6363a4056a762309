package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"railhead/internal/inventory"
)

// railSubnet is an address of a rail with the subnet it lies in.
type railSubnet struct {
	ref     portRef
	address netip.Prefix
}

func (n *Node) railSubnets() []railSubnet {
	var list []railSubnet
	for _, r := range n.ports(isRail) {
		netdev := r.netdev()
		if netdev == nil {
			continue
		}
		for _, a := range netdev.Addresses {
			if !a.Addr().IsLinkLocalUnicast() && !a.IsSingleIP() {
				list = append(list, railSubnet{ref: r, address: a})
			}
		}
	}
	return list
}

// duplicateSubnet finds rails with addresses in one subnet: the kernel then
// answers for all of them on any, and sends through the first.
func duplicateSubnet(n *Node, _ Wishes) []Finding {
	rails := map[netip.Prefix][]railSubnet{}
	var order []netip.Prefix
	for _, s := range n.railSubnets() {
		subnet := s.address.Masked()
		if rails[subnet] == nil {
			order = append(order, subnet)
		}
		if !slices.ContainsFunc(rails[subnet], func(other railSubnet) bool { return other.ref.port.Netdev == s.ref.port.Netdev }) {
			rails[subnet] = append(rails[subnet], s)
		}
	}
	var findings []Finding
	for _, subnet := range order {
		sharing := rails[subnet]
		if len(sharing) < 2 || subnet.Addr().Is4() && n.answersOnlyForItself(sharing) {
			continue
		}
		f := Finding{
			Severity: Warning,
			ID:       "duplicate-subnet",
			Object:   names(sharing),
			Seen:     fmt.Sprintf("%d rails have addresses in %s", len(sharing), subnet),
			Why:      "any of them answers ARP for the others and traffic leaves through one: rails take each other's traffic or lose it",
			Mend:     []string{"# best: a subnet for each rail"},
		}
		if sharing[0].ref.port.LinkLayer == inventory.InfiniBand {
			f.Severity = Info
			f.Why = "any of them answers ARP for the others: what connects by IP address (rdma_cm, TCP) may come in by another rail; RDMA by LID is not affected"
		}
		if subnet.Addr().Is4() {
			f.Mend = append(f.Mend, setSysctls(sharing, "arp_ignore=1", "arp_announce=2")...)
			f.Mend = append(f.Mend, "# and a source rule with a routing table of its own for each")
		}
		findings = append(findings, f)
	}
	return findings
}

// setSysctls sets IPv4 settings of rails now and at every boot.
func setSysctls(rails []railSubnet, settings ...string) []string {
	var list []string
	for _, s := range rails {
		for _, setting := range settings {
			list = append(list, "net.ipv4.conf."+sysctlName(s.ref.port.Netdev)+"."+setting)
		}
	}
	return []string{
		"sysctl -w " + strings.Join(list, " "),
		fmt.Sprintf("printf '%%s\\n' %s > /etc/sysctl.d/90-rails-%s.conf", strings.Join(list, " "), settings[0][:strings.Index(settings[0], "_")]),
	}
}

// answersOnlyForItself tells whether the settings that make rails in one IPv4
// subnet work are in force on all of them.
func (n *Node) answersOnlyForItself(rails []railSubnet) bool {
	for _, s := range rails {
		c := n.IPv4Conf[s.ref.port.Netdev]
		if c.ARPIgnore == 0 || c.ARPAnnounce < 2 {
			return false
		}
	}
	return true
}

func names(rails []railSubnet) string {
	list := make([]string, 0, len(rails))
	for _, s := range rails {
		list = append(list, fmt.Sprintf("%s (rail %d, %s)", s.ref.port.Netdev, *s.ref.device.Rail, s.address))
	}
	return strings.Join(list, ", ")
}

// sysctlName writes a netdev's name as sysctl takes it: it has dots for
// slashes, so a dot in a name (a VLAN's) is written as a slash.
func sysctlName(netdev string) string { return strings.ReplaceAll(netdev, ".", "/") }

// reversePathFilter finds rails that drop packets whose answer would leave
// through another netdev. With one rail there is no other way.
func reversePathFilter(n *Node, _ Wishes) []Finding {
	const strict = 1
	rails := map[string]bool{}
	var strictRails []railSubnet
	for _, s := range n.railSubnets() {
		if !s.address.Addr().Is4() || rails[s.ref.port.Netdev] {
			continue
		}
		rails[s.ref.port.Netdev] = true
		if n.IPv4Conf[s.ref.port.Netdev].RPFilter == strict {
			strictRails = append(strictRails, s)
		}
	}
	if len(rails) < 2 || len(strictRails) == 0 {
		return nil
	}
	f := Finding{
		Severity: Warning,
		ID:       "rp-filter",
		Object:   names(strictRails),
		Seen:     "reverse path filter is strict (1) on " + plural(len(strictRails), "rail"),
		Why:      "with several rails an answer may leave by another rail than the request came in by: strict filtering drops it, and rdma_cm connections and pings time out",
		Mend:     setSysctls(strictRails, "rp_filter=2"),
	}
	return []Finding{f}
}
