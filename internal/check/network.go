package check

import (
	"fmt"
	"net/netip"
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
	for _, r := range n.ports(func(d *inventory.Device) bool { return isPF(d) && d.Rail != nil }) {
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

// duplicateSubnets finds rails with addresses in one subnet: the kernel then
// answers for all of them on any, and sends through the first.
func duplicateSubnets(n *Node, _ Wishes) []Finding {
	rails := map[netip.Prefix][]railSubnet{}
	var order []netip.Prefix
	for _, s := range n.railSubnets() {
		subnet := s.address.Masked()
		if rails[subnet] == nil {
			order = append(order, subnet)
		}
		rails[subnet] = append(rails[subnet], s)
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
		if subnet.Addr().Is4() {
			for _, s := range sharing {
				f.Mend = append(f.Mend, fmt.Sprintf("sysctl -w net.ipv4.conf.%s.arp_ignore=1 net.ipv4.conf.%s.arp_announce=2 # and a source rule with a table of its own",
					sysctlName(s.ref.port.Netdev), sysctlName(s.ref.port.Netdev)))
			}
		}
		findings = append(findings, f)
	}
	return findings
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
		Why:      "with several rails an answer may take another rail than the question came by: strict filtering drops it, and rdma_cm connections and pings time out",
	}
	for _, s := range strictRails {
		f.Mend = append(f.Mend, fmt.Sprintf("sysctl -w net.ipv4.conf.%s.rp_filter=2", sysctlName(s.ref.port.Netdev)))
	}
	return []Finding{f}
}
