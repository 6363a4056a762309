package selection

import (
	"fmt"
	"net/netip"

	"railhead/internal/policy"
)

// Given is an address that an interface got.
type Given struct {
	Interface string
	Pool      policy.Pool
}

// InterfaceRoutes are the routes of one interface.
type InterfaceRoutes struct {
	Interface string
	// Gateways are those of its pools, IPv4 first; they are the way of default
	// routes unless the interface is to have none.
	Gateways []netip.Addr
	// Routes are those of its pools, then those of the pod that it can serve.
	Routes []policy.Route
}

// Routes says which routes interfaces get with their addresses, in the order
// of given. A route of the pod goes to the first interface whose subnet holds
// its gateway; one that no interface can serve is left out, with a warning. Of
// two routes of an interface to one destination the pod's counts.
func Routes(given []Given, ofPod []policy.Route) (routes []InterfaceRoutes, warnings []string) {
	place := map[string]int{}
	for _, g := range given {
		at, ok := place[g.Interface]
		if !ok {
			at = len(routes)
			place[g.Interface] = at
			routes = append(routes, InterfaceRoutes{Interface: g.Interface})
		}
		routes[at].take(g.Pool, ofPod)
	}
	for _, r := range ofPod {
		if name, ok := serving(given, r.Gw); ok {
			at := &routes[place[name]]
			at.Routes = append(at.Routes, r)
			continue
		}
		warnings = append(warnings, fmt.Sprintf("the route to %s has no effect: no interface of the pod has a subnet with its gateway %s", r.Dst, r.Gw))
	}
	return routes, warnings
}

// take adds what a pool says. A destination that the pod has a route of its own
// to, by a gateway of this pool, is left to the pod.
func (i *InterfaceRoutes) take(pool policy.Pool, ofPod []policy.Route) {
	if pool.Gateway.IsValid() {
		i.Gateways = append(i.Gateways, pool.Gateway)
	}
	for _, r := range pool.Routes {
		if !hasDestination(ofPod, r.Dst, pool.Subnet) {
			i.Routes = append(i.Routes, r)
		}
	}
}

func hasDestination(routes []policy.Route, dst, subnet netip.Prefix) bool {
	for _, r := range routes {
		if r.Dst == dst && subnet.Contains(r.Gw) {
			return true
		}
	}
	return false
}

// serving names the first interface whose subnet holds a gateway.
func serving(given []Given, gw netip.Addr) (name string, ok bool) {
	for _, g := range given {
		if g.Pool.Subnet.Contains(gw) {
			return g.Interface, true
		}
	}
	return "", false
}
