package policy

import (
	"net"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// reviewEndpoint has every rule of a pod's addresses; see Catalog.Review.
func reviewEndpoint(obj, old *v2beta1.SpiderEndpoint) Review {
	var review Review
	if old != nil && equality.Semantic.DeepEqual(obj.Status, old.Status) {
		return review
	}
	path := field.NewPath("status", "current", "ips")
	first := map[string]int{}
	for i, entry := range obj.Status.Current.IPs {
		at := path.Index(i)
		if before, twice := first[entry.Interface]; twice {
			review.refuse(at.Child("interface"), entry.Interface, "item %d is this interface already: want one item each", before)
		}
		first[entry.Interface] = i
		review.add(reviewInterface(at, &entry))
	}
	return review
}

// reviewInterface has the rules of one interface.
func reviewInterface(path *field.Path, i *v2beta1.EndpointInterface) Review {
	var review Review
	if !isInterfaceName(i.Interface) {
		review.refuse(path.Child("interface"), i.Interface, `want the name of an interface: 1 to 15 characters without "/", ":" and spaces, and not "." or ".."`)
	}
	review.prefixOf(path.Child("ipv4"), i.IPv4, 4)
	review.prefixOf(path.Child("ipv6"), i.IPv6, 6)
	review.addrOf(path.Child("ipv4Gateway"), i.IPv4Gateway, 4)
	review.addrOf(path.Child("ipv6Gateway"), i.IPv6Gateway, 6)
	review.poolName(path.Child("ipv4Pool"), i.IPv4Pool)
	review.poolName(path.Child("ipv6Pool"), i.IPv6Pool)
	if i.VLAN != nil && (*i.VLAN < 0 || *i.VLAN > maxVLAN) {
		review.refuse(path.Child("vlan"), *i.VLAN, "want a VLAN ID from 0 (none) to %d", maxVLAN)
	}
	if i.MAC != nil && *i.MAC != "" {
		if _, err := net.ParseMAC(*i.MAC); err != nil {
			review.refuse(path.Child("mac"), *i.MAC, `want a MAC address such as "0a:1b:0a:00:00:09"`)
		}
	}
	for n, route := range i.Routes {
		review.add(reviewPodRoute(path.Child("routes").Index(n), route))
	}
	return review
}

// prefixOf checks an address with its prefix length.
func (r *Review) prefixOf(path *field.Path, text *string, version int64) {
	if text == nil || *text == "" {
		return
	}
	prefix, err := netip.ParsePrefix(*text)
	switch {
	case err != nil || prefix.Addr().Is4In6():
		r.refuse(path, *text, `want an IPv%d address with its prefix length, such as "10.0.0.9/24" or "fd00::9/64"`, version)
	case versionOf(prefix.Addr()) != version:
		r.refuse(path, *text, "is IPv%d: want an IPv%d address here", versionOf(prefix.Addr()), version)
	}
}

// addrOf checks an address without one.
func (r *Review) addrOf(path *field.Path, text *string, version int64) {
	if text == nil || *text == "" {
		return
	}
	addr, err := parseAddr(*text)
	switch {
	case err != nil:
		r.refuse(path, *text, "%v", err)
	case versionOf(addr) != version:
		r.refuse(path, *text, "is IPv%d: want an IPv%d address here", versionOf(addr), version)
	}
}

// poolName checks the name of a pool.
func (r *Review) poolName(path *field.Path, name *string) {
	if name == nil || *name == "" {
		return
	}
	if problems := validation.IsDNS1123Subdomain(*name); len(problems) > 0 {
		r.refuse(path, *name, "want the name of a SpiderIPPool: %s", strings.Join(problems, "; "))
	}
}

// reviewPodRoute has the rules of a route that a pod has, which may be the
// default route.
func reviewPodRoute(path *field.Path, route v2beta1.Route) Review {
	var review Review
	dst, dstErr := parsePrefix(route.Dst)
	if dstErr != nil {
		review.refuse(path.Child("dst"), route.Dst, "%v", dstErr)
	}
	gw, gwErr := parseAddr(route.Gw)
	if gwErr != nil {
		review.refuse(path.Child("gw"), route.Gw, "%v", gwErr)
	}
	if dstErr == nil && gwErr == nil && dst.Addr().Is4() != gw.Is4() {
		review.refuse(path.Child("gw"), route.Gw, "is IPv%d, and the destination %s is IPv%d", versionOf(gw), dst, versionOf(dst.Addr()))
	}
	return review
}

// isInterfaceName says whether Linux takes a name for an interface.
func isInterfaceName(name string) bool {
	return name != "" && len(name) <= 15 && name != "." && name != ".." && !strings.ContainsAny(name, "/: \t\n\v\f\r")
}
