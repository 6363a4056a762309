package attach

import (
	"errors"
	"fmt"
	"io/fs"
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

// keepWays makes the node's routes again that went with a link, of the ways that are left.
func (a *Attacher) keepWays(was Former) error {
	if !slices.ContainsFunc(was.Routes, isMultipath) {
		return nil
	}
	a.rules.Lock()
	defer a.rules.Unlock()
	up, err := a.upOnNode()
	if err != nil {
		return err
	}
	var requests []rtnl.Request
	for _, r := range was.Routes {
		left, ok := only(r, func(hop rtnl.NextHop) bool { return hop.LinkIndex != was.Index && up[hop.LinkIndex] })
		if isMultipath(r) && ok {
			requests = append(requests, rtnl.RouteAdd{Route: left})
		}
	}
	return ignore(a.node.Do(requests...), fs.ErrExist)
}

// rejoin gives the node's routes the ways back that they had over a link, which may
// have another number now. The kernel takes no route with a way over a link that is
// down: who sets that up again gives the way back.
func (a *Attacher) rejoin(was Former, index int) error {
	if !slices.ContainsFunc(was.Routes, isMultipath) {
		return nil
	}
	a.rules.Lock()
	defer a.rules.Unlock()
	up, err := a.upOnNode()
	if err != nil {
		return err
	}
	routes, err := a.node.Routes()
	if err != nil {
		return fmt.Errorf("routes of the node: %w", err)
	}
	var requests []rtnl.Request
	for _, r := range was.Routes {
		if !isMultipath(r) {
			continue
		}
		r.NextHops = renumber(r.NextHops, was.Index, index)
		n := slices.IndexFunc(routes, func(o rtnl.Route) bool {
			return o.Table == r.Table && o.Dst == r.Dst && o.TOS == r.TOS && o.Priority == r.Priority
		})
		ok := true
		if n >= 0 {
			r.NextHops, ok = joined(waysOf(routes[n]), r.NextHops, index)
			ok = ok && !goes(routes[n], index) // else it has them
		}
		if r, isLeft := only(r, func(hop rtnl.NextHop) bool { return up[hop.LinkIndex] }); ok && isLeft {
			requests = append(requests, rtnl.RouteAdd{Route: r, Replace: n >= 0})
		}
	}
	return errors.Join(a.node.Do(requests...)...)
}

// joined are the ways of a route with those over a link that it had before. A route
// that has none any more of the ways that it had is somebody else's: false.
func joined(now, before []rtnl.NextHop, link int) ([]rtnl.NextHop, bool) {
	var ways []rtnl.NextHop
	isSame := false
	for _, hop := range now {
		if n := slices.IndexFunc(before, isWay(hop)); n >= 0 {
			hop, isSame = before[n], true // of a last way the kernel does not tell the weight
		}
		ways = append(ways, hop)
	}
	for _, hop := range before {
		if hop.LinkIndex == link && !slices.ContainsFunc(now, isWay(hop)) {
			ways = append(ways, hop)
		}
	}
	return ways, isSame
}

// isWay finds a way among others, whatever its weight.
func isWay(hop rtnl.NextHop) func(rtnl.NextHop) bool {
	return func(o rtnl.NextHop) bool { return o.LinkIndex == hop.LinkIndex && o.Gateway == hop.Gateway }
}

func renumber(ways []rtnl.NextHop, from, to int) []rtnl.NextHop {
	ways = slices.Clone(ways)
	for n := range ways {
		if ways[n].LinkIndex == from {
			ways[n].LinkIndex = to
		}
	}
	return ways
}

// upOnNode are the node's links that routes can go over.
func (a *Attacher) upOnNode() (map[int]bool, error) {
	links, err := a.node.Links()
	if err != nil {
		return nil, fmt.Errorf("links of the node: %w", err)
	}
	up := map[int]bool{}
	for _, l := range links {
		up[l.Index] = l.Up
	}
	return up, nil
}
