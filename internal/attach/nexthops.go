package attach

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"railhead/internal/kernel/rtnl"
)

// waysOf are the next hops of a route, also where it has one and says so itself.
func waysOf(r rtnl.Route) []rtnl.NextHop {
	if len(r.NextHops) > 0 {
		return r.NextHops
	}
	return []rtnl.NextHop{{LinkIndex: r.LinkIndex, Gateway: r.Gateway, OnLink: r.OnLink, Weight: 1}}
}

// goes says whether a route has a way over a link.
func goes(r rtnl.Route, link int) bool {
	return slices.ContainsFunc(waysOf(r), func(hop rtnl.NextHop) bool { return hop.LinkIndex == link })
}

// only is a route with those of its ways that are kept; false if there are none.
func only(r rtnl.Route, keep func(rtnl.NextHop) bool) (rtnl.Route, bool) {
	ways := slices.Clone(waysOf(r))
	ways = slices.DeleteFunc(ways, func(hop rtnl.NextHop) bool { return !keep(hop) })
	if len(r.NextHops) > 0 {
		r.NextHops = ways
	}
	return r, len(ways) > 0
}

// hopByHop are routes as they come and go: each as a whole, but of IPv6 those over
// several links hop by hop, since the kernel makes one of what several plugins made.
// A hop has its weight with it.
func hopByHop(routes []rtnl.Route) []rtnl.Route {
	var all []rtnl.Route
	for _, r := range routes {
		if r.Dst.Addr().Is4() || len(r.NextHops) == 0 {
			all = append(all, r)
			continue
		}
		for _, hop := range r.NextHops {
			r.NextHops = []rtnl.NextHop{hop}
			all = append(all, r)
		}
	}
	return all
}

// isMultipath says whether a route is one of IPv4 with several ways, which the kernel
// drops whole with the first of their links that goes.
func isMultipath(r rtnl.Route) bool { return len(r.NextHops) > 0 && r.Dst.Addr().Is4() }

// Remember has the Attacher know of netdevs that pods of this boot of the node had
// before it began: the oldest pod first.
func (a *Attacher) Remember(plan *Plan) {
	for _, i := range plan.devices() {
		a.remember(*i.Before)
	}
}

// remember notes how a netdev was that a pod gets.
func (a *Attacher) remember(was Former) {
	a.forget(was)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = append(a.away, was)
}

// forget notes that it is back.
func (a *Attacher) forget(was Former) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = slices.DeleteFunc(a.away, func(o Former) bool { return o.Name == was.Name })
}

// whole is a route over a link with the ways over netdevs that pods have, or that were
// there when these went: so that it is known again whichever comes back first, and with
// the weight of a last way, which the kernel does not tell.
func (a *Attacher) whole(r rtnl.Route, link int) rtnl.Route {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, was := range slices.Backward(a.away) {
		for _, o := range was.Routes {
			if len(o.NextHops) > 0 && isInPlace(r, o) && isOf(r, o, o.NextHops) {
				others, _ := only(o, func(hop rtnl.NextHop) bool { return hop.LinkIndex != link })
				return joined(r, o.NextHops, others.NextHops)
			}
		}
	}
	return r
}

// keepWays leaves of the node's routes over a link those ways that are over others,
// before it goes.
func (a *Attacher) keepWays(was Former) error {
	if !slices.ContainsFunc(was.Routes, isMultipath) {
		return nil
	}
	a.rules.Lock()
	defer a.rules.Unlock()
	routes, up, err := a.routesOfNode()
	if err != nil {
		return err
	}
	var requests []rtnl.Request
	for n, r := range routes {
		if !isMultipath(r) || r.NextHopID != 0 || !goes(r, was.Index) {
			continue // the kernel keeps those of a nexthop object itself
		}
		left, ok := only(r, func(hop rtnl.NextHop) bool { return hop.LinkIndex != was.Index && up[hop.LinkIndex] })
		if isOn(was.Addresses, r.Src) {
			left.Src = netip.Addr{} // with which the kernel would drop it
		}
		first := slices.IndexFunc(routes, func(o rtnl.Route) bool { return isInPlace(o, r) }) // which the kernel replaces
		if ok && first == n {
			requests = append(requests, rtnl.RouteAdd{Route: left, Replace: true})
		}
	}
	return errors.Join(a.node.Do(requests...)...)
}

// rejoin gives the node's routes the ways back that they had over a link, which may
// have another number now.
func (a *Attacher) rejoin(was Former, index int) error {
	before := slices.DeleteFunc(slices.Clone(was.Routes), func(r rtnl.Route) bool { return len(r.NextHops) == 0 })
	if len(before) == 0 {
		return nil
	}
	a.rules.Lock()
	defer a.rules.Unlock()
	routes, up, err := a.routesOfNode()
	if err != nil {
		return err
	}
	addresses, err := a.node.Addresses()
	if err != nil {
		return fmt.Errorf("addresses of the node: %w", err)
	}
	var requests []rtnl.Request
	for _, r := range before {
		if !isOn(addresses, r.Src) {
			r.Src = netip.Addr{} // it went with another netdev, and comes back with that
		}
		add, ok := rejoined(a.whole(r, was.Index), was.Index, index, routes)
		if isOn(was.Addresses, r.Src) {
			add.Src = r.Src
		}
		if ok { // the kernel takes no route with a way over a link that is down
			add.Route, ok = only(add.Route, func(hop rtnl.NextHop) bool { return up[hop.LinkIndex] })
		}
		if ok {
			requests = append(requests, add)
		}
	}
	return errors.Join(a.node.Do(requests...)...)
}

// rejoined gives a route its ways over a link back: into what there is left of it, or
// alone. A route in its place that has no other way of its is somebody else's.
func rejoined(r rtnl.Route, from, to int, routes []rtnl.Route) (rtnl.RouteAdd, bool) {
	others, _ := only(r, func(hop rtnl.NextHop) bool { return hop.LinkIndex != from })
	own, _ := only(r, func(hop rtnl.NextHop) bool { return hop.LinkIndex == from })
	for n := range own.NextHops {
		own.NextHops[n].LinkIndex = to
	}
	there := slices.DeleteFunc(slices.Clone(routes), func(o rtnl.Route) bool { return !isInPlace(o, r) })
	if len(there) == 0 {
		return rtnl.RouteAdd{Route: own}, true
	}
	left := slices.IndexFunc(there, func(o rtnl.Route) bool { return isOf(o, r, others.NextHops) })
	lacked, isLacking := only(own, func(hop rtnl.NextHop) bool {
		return !slices.ContainsFunc(there, func(o rtnl.Route) bool { return slices.ContainsFunc(waysOf(o), isWay(hop)) })
	})
	switch {
	case left < 0 || !isLacking:
		return rtnl.RouteAdd{}, false
	case r.Dst.Addr().Is6(): // the kernel makes one route of them
		return rtnl.RouteAdd{Route: lacked, Append: true}, true
	}
	return rtnl.RouteAdd{Route: joined(there[left], r.NextHops, lacked.NextHops), Replace: true}, left == 0
}

// isInPlace says whether one of two routes is in the other's way.
func isInPlace(x, y rtnl.Route) bool {
	return x.Table == y.Table && x.Dst == y.Dst && x.From == y.From && x.TOS == y.TOS && x.Priority == y.Priority
}

// isOf says whether a route that is in another's place is what there is left of it:
// made by the same, with a way to a gateway of its. Links may have other numbers.
func isOf(left, r rtnl.Route, ways []rtnl.NextHop) bool {
	return left.Protocol == r.Protocol && left.Type == r.Type && slices.ContainsFunc(waysOf(left), func(hop rtnl.NextHop) bool {
		return slices.ContainsFunc(ways, isTo(hop.Gateway))
	})
}

// joined is a route with further ways that it lacks. Of a last way the kernel does not
// tell the weight: those that are known do.
func joined(r rtnl.Route, known, more []rtnl.NextHop) rtnl.Route {
	ways := slices.Clone(waysOf(r))
	if len(r.NextHops) == 0 {
		n := slices.IndexFunc(known, isWay(ways[0]))
		if n < 0 {
			n = slices.IndexFunc(known, isTo(ways[0].Gateway))
		}
		if n >= 0 {
			ways[0].Weight = known[n].Weight
		}
	}
	for _, hop := range more {
		if !slices.ContainsFunc(ways, isWay(hop)) {
			ways = append(ways, hop)
		}
	}
	r.NextHops, r.NextHopID, r.LinkIndex, r.Gateway, r.OnLink = ways, 0, 0, netip.Addr{}, false
	return r
}

// isWay finds a way among others, whatever its weight.
func isWay(hop rtnl.NextHop) func(rtnl.NextHop) bool {
	return func(o rtnl.NextHop) bool { return o.LinkIndex == hop.LinkIndex && o.Gateway == hop.Gateway }
}

// isTo finds a way to a gateway, or one without.
func isTo(gateway netip.Addr) func(rtnl.NextHop) bool {
	return func(o rtnl.NextHop) bool { return o.Gateway == gateway }
}

// isOn says whether an address is among those of links.
func isOn(addresses []rtnl.Address, addr netip.Addr) bool {
	return slices.ContainsFunc(addresses, func(a rtnl.Address) bool { return a.Prefix.Addr() == addr })
}

// routesOfNode are its routes, and which links they can go over.
func (a *Attacher) routesOfNode() ([]rtnl.Route, map[int]bool, error) {
	links, err := a.node.Links()
	if err != nil {
		return nil, nil, fmt.Errorf("links of the node: %w", err)
	}
	up := map[int]bool{}
	for _, l := range links {
		up[l.Index] = l.Up
	}
	routes, err := a.node.Routes()
	if err != nil {
		return nil, nil, fmt.Errorf("routes of the node: %w", err)
	}
	return routes, up, nil
}
