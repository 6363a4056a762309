package routing

import (
	"cmp"
	"net/netip"
	"slices"

	"railhead/internal/policy"
)

// policyRoute is a route as pools, pods and networks write it.
type policyRoute = policy.Route

// Metrics of routes to one destination by several interfaces, to which the
// table of the interface is added. Subnets come before routes over gateways, and
// both leave the kernel's own (IPv4 0, IPv6 256 and 1024) in front.
const (
	metricSubnet4 = 0
	metricSubnet6 = 256
	metricRoute   = 1024
)

// add takes a route over unless there is one to that destination already, of
// which it says so where an administrator wrote both.
func (p *planner) add(r Route) {
	to := destination{r.Table, r.Dst}
	for _, before := range p.taken[to] {
		if before.Metric != r.Metric {
			continue
		}
		if written(r.Why) && (before.Via != r.Via || before.Dev != r.Dev) {
			p.note(r.Owner, "%s: %s in table %d is left out: %s has one (%s)", r.Why, r.Dst, r.Table, before.Owner, before.Why)
		}
		return
	}
	p.taken[to] = append(p.taken[to], r)
	p.result.Pod.Routes = append(p.result.Pod.Routes, r)
}

// linked says whether a table has a route to an address on a link.
func (p *planner) linked(table uint32, a netip.Addr, dev string) bool {
	return slices.ContainsFunc(p.taken[destination{table, single(a)}], func(r Route) bool { return r.Dev == dev && !r.Via.IsValid() })
}

// written says whether somebody wrote a route, so that leaving it out is news.
func written(w Why) bool { return w == WhyRoute || w == WhyPolicy }

// subnet is the route of a subnet in a table.
func subnet(i Interface, prefix netip.Prefix, table uint32) Route {
	r := Route{Owner: i.Name, Why: WhySubnet, Table: table, Dst: prefix.Masked(), Dev: i.Name}
	if prefix.Addr().Is4() {
		r.Scope, r.Src = ScopeLink, prefix.Addr()
	}
	return r
}

// over is a route by an interface's gateway, or on its link where gw is zero.
func over(i Interface, why Why, dst netip.Prefix, gw netip.Addr, table uint32) Route {
	r := Route{Owner: i.Name, Why: why, Table: table, Dst: dst.Masked(), Dev: i.Name, Via: gw}
	switch {
	case gw.IsValid():
		r.OnLink = !i.reaches(gw)
	case dst.Addr().Is4():
		r.Scope = ScopeLink
	}
	return r
}

// planTable fills an interface's own table and makes the rules that lead to it,
// for each family that has something in it.
func (p *planner) planTable(i Interface) {
	table := p.tableOf(i)
	if table == 0 {
		return
	}
	for _, f := range families() {
		before := len(p.result.Pod.Routes)
		if i.has(f) {
			p.fillTable(i, f, table)
		}
		if len(p.result.Pod.Routes) == before {
			continue
		}
		for _, prefix := range i.sources(f) {
			p.result.Pod.Rules = append(p.result.Pod.Rules, Rule{
				Owner: i.Name, Family: int(f), Priority: priorityOf(i), From: single(prefix.Addr()), Table: table,
			})
		}
	}
}

// fillTable has all that is sent from an interface's addresses. What comes first wins.
func (p *planner) fillTable(i Interface, f family, table uint32) {
	for _, prefix := range i.subnets(f) {
		p.add(subnet(i, prefix, table))
	}
	if f == ipv6 {
		p.add(subnet(i, netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfe, 0x80}), 64), table))
	}
	if p.active(i) && !i.IsDefaultNetwork {
		p.addPolicyRoutes(i, f, table)
	}
	for _, r := range i.Routes {
		if familyOf(r.Dst.Addr()) == f {
			p.add(over(i, WhyRoute, r.Dst, routeGateway(i, r), table))
		}
	}
	if gw := i.gateway(f); gw.IsValid() {
		p.add(over(i, WhyGateway, f.everything(), gw, table))
	}
	if p.active(i) {
		p.addNode(i, f, table)
	}
}

// routeGateway is a route's own, or the interface's where it names none. A route
// that a kernel has without one is on the link, and so is one to the gateway.
func routeGateway(i Interface, r policyRoute) netip.Addr {
	gw := r.Gw
	if !gw.IsValid() && !i.Foreign {
		gw = i.plainGateway(familyOf(r.Dst.Addr()))
	}
	if gw.IsValid() && r.Dst == single(gw) {
		return netip.Addr{}
	}
	return gw
}

// addPolicyRoutes adds those over a gateway on the interface's subnets. The
// cluster's are meant for whichever interface that is.
func (p *planner) addPolicyRoutes(i Interface, f family, table uint32) {
	for _, r := range i.Coordinator.PolicyRoutes {
		switch {
		case familyOf(r.Gw) != f || !i.reaches(r.Gw):
		case table == TableMain && r.Dst == f.everything() && p.defaultOf[f] != i.Name:
			p.note(i.Name, "%s: %s is left out of the main table, whose default is decided by podDefaultRouteNIC", WhyPolicy, r.Dst)
		default:
			p.add(over(i, WhyPolicy, r.Dst, r.Gw, table))
		}
	}
}

// addNode adds what goes over the node to a table: its addresses, then pods,
// Services and what the administrator adds.
func (p *planner) addNode(i Interface, f family, table uint32) {
	node, ok := p.over[f]
	if !ok {
		return
	}
	src := node.src
	if table != TableMain {
		src = netip.Addr{} // rules lead here by it
	}
	for _, a := range node.nodes {
		r := Route{Owner: i.Name, Why: WhyNode, Table: table, Dst: single(a), Dev: node.dev, Src: src}
		if f == ipv4 {
			r.Scope = ScopeLink
		}
		p.add(r)
	}
	o := i.Coordinator
	p.addHijacked(i, f, WhyPods, o.PodCIDRs, table)
	p.addHijacked(i, f, WhyService, o.ServiceCIDRs, table)
	p.addHijacked(i, f, WhyHijack, o.HijackCIDRs, table)
}

// addHijacked adds CIDRs of a family that are reached over the node.
func (p *planner) addHijacked(i Interface, f family, why Why, cidrs []netip.Prefix, table uint32) {
	node := p.over[f]
	for _, dst := range cidrs {
		if familyOf(dst.Addr()) != f || table == TableMain && dst == f.everything() {
			continue // main's default is decided otherwise
		}
		if before := p.taken[destination{table, dst.Masked()}]; len(before) > 0 {
			if table == TableMain && before[0].Dev != node.dev {
				p.note(i.Name, "%s: %s does not go over the node: %s has a route (%s)", why, dst, before[0].Owner, before[0].Why)
			}
			continue
		}
		r := Route{Owner: i.Name, Why: why, Table: table, Dst: dst.Masked(), Dev: node.dev, Via: node.via}
		if table == TableMain {
			r.Src = node.src
		}
		switch {
		case node.via.IsValid():
			r.OnLink = !p.linked(table, node.via, node.dev) && (p.underlay || !p.first.reaches(node.via))
		case f == ipv4:
			r.Scope = ScopeLink
		}
		p.add(r)
	}
}

// sortRoutes puts routes in order: by table and family, those on links before
// those over gateways that they lead to, then by destination and metric.
func sortRoutes(routes []Route) {
	slices.SortStableFunc(routes, func(a, b Route) int {
		return cmp.Or(
			cmp.Compare(a.Table, b.Table),
			cmp.Compare(familyOf(a.Dst.Addr()), familyOf(b.Dst.Addr())),
			compareBool(a.Via.IsValid(), b.Via.IsValid()),
			a.Dst.Addr().Compare(b.Dst.Addr()),
			cmp.Compare(a.Dst.Bits(), b.Dst.Bits()),
			cmp.Compare(a.Metric, b.Metric),
			cmp.Compare(a.Dev, b.Dev),
		)
	})
}

// sortRules puts rules in the order in which they are asked.
func sortRules(rules []Rule) {
	slices.SortStableFunc(rules, func(a, b Rule) int {
		return cmp.Or(
			cmp.Compare(a.Family, b.Family),
			cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(a.Table, b.Table),
			a.From.Addr().Compare(b.From.Addr()),
		)
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
