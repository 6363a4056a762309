package routing

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// planSysctls sets what the interfaces need. All are written before addresses.
func (p *planner) planSysctls() {
	p.enableIPv6()
	p.setReversePath()
	p.keepDefaults()
	p.keepARPApart()
}

// set adds a setting of an interface, or of all.
func (p *planner) set(owner string, f family, dev, name, value string, optional bool) {
	p.result.Pod.Sysctls = append(p.result.Pod.Sysctls, Sysctl{
		Owner: owner, Path: fmt.Sprintf("net/ipv%d/conf/%s/%s", f, dev, name), Value: value, Optional: optional,
	})
}

// enableIPv6 lets interfaces with IPv6 addresses have them: runtimes start pods without.
func (p *planner) enableIPv6() {
	for _, i := range p.interfaces {
		if i.Foreign || !slices.ContainsFunc(i.Addresses, func(a netip.Prefix) bool { return a.Addr().Is6() }) {
			continue
		}
		p.set(i.Name, ipv6, i.Name, "disable_ipv6", "0", false)
		if _, ok := p.over[ipv6]; ok && p.underlay && i.IsDefaultNetwork {
			p.set(i.Name, ipv6, podVeth, "disable_ipv6", "0", false)
		}
	}
}

// setReversePath sets rp_filter. The larger of an interface's and that of all
// counts, so that of all is the smallest that somebody asks for. The default
// network's interface gets that too: answers of rails may come in by it.
func (p *planner) setReversePath() {
	all := -1
	for _, i := range p.actives {
		if want := i.Coordinator.PodRPFilter; want >= 0 && (all < 0 || want < all) {
			all = want
		}
	}
	if all >= 0 {
		p.set("", ipv4, "all", "rp_filter", strconv.Itoa(all), false)
	}
	for _, i := range p.interfaces {
		want := -1
		switch {
		case p.active(i):
			want = i.Coordinator.PodRPFilter
		case i.IsDefaultNetwork && i.Coordinator == nil:
			want = all
		}
		if want >= 0 {
			p.set(i.Name, ipv4, i.Name, "rp_filter", strconv.Itoa(want), false)
		}
	}
	if p.veth == nil {
		return
	}
	want := p.first.Coordinator.PodRPFilter
	if want >= 0 {
		p.set(p.first.Name, ipv4, podVeth, "rp_filter", strconv.Itoa(want), false)
	}
	if want != 0 {
		// A strict filter must look where the answer goes, and that is by its mark.
		p.set(p.first.Name, ipv4, podVeth, "src_valid_mark", "1", false)
	}
}

// keepDefaults keeps routers from announcing default routes into main by
// interfaces that are not to have one.
func (p *planner) keepDefaults() {
	for _, i := range p.actives {
		if p.defaultOf[ipv6] != i.Name {
			p.set(i.Name, ipv6, i.Name, "accept_ra_defrtr", "0", true)
		}
	}
}

// keepARPApart lets each interface answer for its own addresses only where
// several are on one subnet: a RoCE peer would learn another rail's MAC address.
// Neighbours of IPv6 are kept apart as it is.
func (p *planner) keepARPApart() {
	told := map[string]bool{}
	for _, i := range p.actives {
		if len(p.overlapping(i, ipv4)) > 1 {
			p.set(i.Name, ipv4, i.Name, "arp_ignore", "1", false)
			p.set(i.Name, ipv4, i.Name, "arp_announce", "2", false)
		}
		for _, f := range families() {
			others := p.overlapping(i, f)
			if together := strings.Join(others, ", "); len(others) > 1 && !told[together] {
				told[together] = true
				p.note("", "%s have subnets in common: what is sent from no address of its own leaves by the first", together)
			}
		}
	}
}

// overlapping are the interfaces with a subnet that overlaps one of i, with i
// among them.
func (p *planner) overlapping(i Interface, f family) []string {
	var all []string
	for _, other := range p.interfaces {
		if slices.ContainsFunc(i.Addresses, func(a netip.Prefix) bool {
			return isSubnet(a) && familyOf(a.Addr()) == f &&
				slices.ContainsFunc(other.Addresses, func(b netip.Prefix) bool { return isSubnet(b) && a.Overlaps(b) })
		}) {
			all = append(all, other.onMasters())
		}
	}
	return all
}
