package routing

import (
	"net/netip"
	"slices"
)

// planMain fills the main table, where packets are looked up that have no
// source yet. What comes first wins.
func (p *planner) planMain() {
	for _, i := range p.interfaces {
		if i.Foreign {
			p.planForeign(i)
		}
	}
	for _, i := range p.interfaces {
		p.addSubnets(i)
	}
	for _, i := range p.interfaces {
		if p.active(i) && (i.IsDefaultNetwork || p.tableOf(i) == 0) {
			p.addPolicyRoutes(i, ipv4, TableMain)
			p.addPolicyRoutes(i, ipv6, TableMain)
		}
	}
	for _, i := range p.interfaces {
		p.addRoutes(i)
		for _, f := range families() {
			if p.defaultOf[f] == i.Name && !i.Foreign {
				p.add(over(i, WhyGateway, f.everything(), i.gateway(f), TableMain))
			}
		}
	}
	for _, f := range families() {
		for _, i := range p.actives {
			p.addNode(i, f, TableMain)
		}
	}
}

// planForeign keeps clear of the routes in main that another's plugin made, and
// takes away its default where another interface has it.
func (p *planner) planForeign(i Interface) {
	for _, r := range i.Routes {
		to := destination{TableMain, r.Dst.Masked()}
		p.taken[to] = append(p.taken[to], over(i, WhyRoute, r.Dst, routeGateway(i, r), TableMain))
	}
	for _, f := range families() {
		gw := i.gateway(f)
		if !gw.IsValid() {
			continue
		}
		to := destination{TableMain, f.everything()}
		r := over(i, WhyGateway, to.dst, gw, TableMain)
		if len(p.actives) > 0 && p.defaultOf[f] != "" && p.defaultOf[f] != i.Name {
			r.OnLink = false // whichever way it was made
			p.result.Pod.Remove = append(p.result.Pod.Remove, r)
			p.taken[to] = slices.DeleteFunc(p.taken[to], func(r Route) bool { return r.Owner == i.Name })
			continue
		}
		p.taken[to] = append(p.taken[to], r)
	}
}

// addSubnets adds what an interface reaches directly. The kernel makes these
// routes with the addresses, but for those of a subnet on several interfaces:
// their order would be that in which the addresses came.
func (p *planner) addSubnets(i Interface) {
	for _, f := range families() {
		for _, prefix := range i.subnets(f) {
			r := subnet(i, prefix, TableMain)
			switch shared := p.sharing(prefix) > 1; {
			case !shared || i.Foreign:
				r.Kernel = true
				if f == ipv6 {
					r.Metric = metricSubnet6
				}
			case f == ipv4:
				r.Metric = metricSubnet4 + metricOf(i)
			default:
				r.Metric = metricSubnet6 + metricOf(i)
			}
			p.add(r)
		}
	}
}

// metricOf keeps interfaces apart, the default network's first, then by rail.
func metricOf(i Interface) uint32 {
	if i.IsDefaultNetwork {
		return tableDefault
	}
	return tableRails + uint32(i.Rail)
}

// addRoutes adds the routes of an interface's pools and of its pod, but defaults.
// Those of a Foreign interface are there.
func (p *planner) addRoutes(i Interface) {
	if i.Foreign {
		return
	}
	for _, r := range i.Routes {
		dst := r.Dst.Masked()
		if f := familyOf(dst.Addr()); dst == f.everything() || !i.has(f) {
			continue
		}
		route := over(i, WhyRoute, dst, routeGateway(i, r), TableMain)
		if p.isShared(i, dst) {
			route.Metric = metricRoute + metricOf(i)
		}
		p.add(route)
	}
}

// isShared says whether another interface has a route to a destination too, or
// somebody is on it.
func (p *planner) isShared(mine Interface, dst netip.Prefix) bool {
	return slices.ContainsFunc(p.interfaces, func(i Interface) bool {
		has := func(r policyRoute) bool { return r.Dst.Masked() == dst }
		on := func(q netip.Prefix) bool { return q.Masked() == dst }
		return i.Name != mine.Name && slices.ContainsFunc(i.Routes, has) || slices.ContainsFunc(i.Addresses, on)
	})
}
