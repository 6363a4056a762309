package policy

import (
	"net/netip"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// written is what users write of a pool's addresses, and of a subnet's.
type written struct {
	version         *int64
	subnet          string
	ips, excludeIPs []string
	gateway         *string
	routes          []v2beta1.Route
	vlan            *int64
}

// addressing is what written means, as far as it could be parsed.
type addressing struct {
	subnet    netip.Prefix // invalid if it could not be parsed
	addresses *netipx.IPSet
	gateway   netip.Addr
	routes    []Route
}

// addressingOf parses what pools and subnets have in common, by every rule
// that needs no other object.
func addressingOf(spec *field.Path, w written) (addressing, Review) {
	var (
		a      addressing
		review Review
		err    error
	)
	path := spec.Child("subnet")
	switch a.subnet, err = parsePrefix(w.subnet); {
	case w.subnet == "":
		review.Errors = append(review.Errors, field.Required(path, `want a CIDR such as "10.0.0.0/24" or "fd00::/64"`))
	case err != nil:
		review.refuse(path, w.subnet, "%v", err)
	default:
		review.warnHostBits(path, w.subnet, a.subnet)
	}
	review.reviewVersion(spec.Child("ipVersion"), w.version, a.subnet)

	var more Review
	a.addresses, more = effectiveOf(spec, w, a.subnet)
	review.add(more)
	a.gateway, more = gatewayOf(spec.Child("gateway"), w.gateway, a)
	review.add(more)
	a.routes, more = routesOf(spec.Child("routes"), w.routes, a.subnet)
	review.add(more)
	review.warnEdges(spec.Child("ips"), a)
	if w.vlan != nil {
		review.warn(spec.Child("vlan"), "has no effect: the VLAN is the network's, vlanID of its SpiderMultusConfig")
	}
	return a, review
}

// warnHostBits says that a CIDR names an address within its network.
func (r *Review) warnHostBits(path *field.Path, text string, subnet netip.Prefix) {
	if p, err := netip.ParsePrefix(text); err == nil && p != subnet {
		r.warn(path, "%q has host bits set: it means %q", text, subnet)
	}
}

// reviewVersion holds a stated family against the subnet's.
func (r *Review) reviewVersion(path *field.Path, version *int64, subnet netip.Prefix) {
	switch {
	case version == nil:
	case *version != 4 && *version != 6:
		r.refuse(path, *version, "want 4 or 6, or leave it out")
	case subnet.IsValid() && *version != versionOf(subnet.Addr()):
		r.refuse(path, *version, "the subnet %s is IPv%d: want %[2]d, or leave it out", subnet, versionOf(subnet.Addr()))
	}
}

// effectiveOf is ips without excludeIPs.
func effectiveOf(spec *field.Path, w written, subnet netip.Prefix) (*netipx.IPSet, Review) {
	ips, review := listOf(spec.Child("ips"), w.ips, subnet)
	excluded, more := listOf(spec.Child("excludeIPs"), w.excludeIPs, subnet)
	review.add(more)
	if len(w.ips) > 0 && more.OK() {
		for i, r := range excluded.ranges {
			if !ips.set.OverlapsRange(r) {
				review.warn(spec.Child("excludeIPs").Index(i), "%q has no effect: ips has none of it", w.excludeIPs[i])
			}
		}
	}
	var build netipx.IPSetBuilder
	build.AddSet(ips.set)
	build.RemoveSet(excluded.set)
	set, err := build.IPSet()
	if err != nil {
		review.refuse(spec.Child("ips"), w.ips, "%v", err)
		return &netipx.IPSet{}, review
	}
	return set, review
}

// gatewayOf parses a gateway, which is of the subnet and no pod's.
func gatewayOf(path *field.Path, text *string, a addressing) (netip.Addr, Review) {
	var review Review
	if text == nil {
		return netip.Addr{}, review
	}
	addr, err := parseAddr(*text)
	if err == nil {
		err = within(netipx.IPRangeFrom(addr, addr), a.subnet)
	}
	if err != nil {
		review.refuse(path, *text, "%v", err)
		return netip.Addr{}, review
	}
	if a.addresses.Contains(addr) {
		review.refuse(path, *text, "is one of the addresses for pods: take it from ips, or add it to excludeIPs")
	}
	return addr, review
}

// routesOf parses routes of pods.
func routesOf(path *field.Path, routes []v2beta1.Route, subnet netip.Prefix) ([]Route, Review) {
	var (
		review Review
		parsed []Route
	)
	first := map[netip.Prefix]int{}
	for i, route := range routes {
		at := path.Index(i)
		dst, more := destinationOf(at.Child("dst"), route.Dst, subnet)
		review.add(more)
		if before, twice := first[dst]; twice && dst.IsValid() {
			review.refuse(at.Child("dst"), route.Dst, "item %d has this destination already: want one route each", before)
		} else {
			first[dst] = i
		}
		gw, err := parseAddr(route.Gw)
		if err == nil {
			err = within(netipx.IPRangeFrom(gw, gw), subnet)
		}
		if err != nil {
			review.refuse(at.Child("gw"), route.Gw, "%v", err)
		}
		if dst.IsValid() && err == nil {
			parsed = append(parsed, Route{Dst: dst, Gw: gw})
		}
	}
	return parsed, review
}

// destinationOf parses the destination of a pod's route beside the default one.
func destinationOf(path *field.Path, text string, subnet netip.Prefix) (netip.Prefix, Review) {
	var review Review
	dst, err := parsePrefix(text)
	switch {
	case err != nil:
		review.refuse(path, text, "%v", err)
	case dst.Bits() == 0:
		review.refuse(path, text, "is the default route: name the gateway in spec.gateway instead")
	case subnet.IsValid() && dst.Addr().Is4() != subnet.Addr().Is4():
		review.refuse(path, text, "is IPv%d, and the subnet %s is IPv%d", versionOf(dst.Addr()), subnet, versionOf(subnet.Addr()))
	default:
		review.warnHostBits(path, text, dst)
		return dst, review
	}
	return netip.Prefix{}, review
}

// warnEdges says that pods may be given an address that means the whole
// subnet, which many routers and hosts do not serve.
func (r *Review) warnEdges(path *field.Path, a addressing) {
	if !a.subnet.IsValid() || a.subnet.Addr().BitLen()-a.subnet.Bits() < 2 {
		return
	}
	all := netipx.RangeOfPrefix(a.subnet)
	if a.addresses.Contains(all.From()) {
		name := "network address"
		if a.subnet.Addr().Is6() {
			name = "router anycast address"
		}
		r.warn(path, "%s is the %s of %s: pods with it may not be reached; add it to excludeIPs", all.From(), name, a.subnet)
	}
	if a.subnet.Addr().Is4() && a.addresses.Contains(all.To()) {
		r.warn(path, "%s is the broadcast address of %s: pods with it may not be reached; add it to excludeIPs", all.To(), a.subnet)
	}
}
