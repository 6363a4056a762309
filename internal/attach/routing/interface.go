package routing

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"railhead/internal/policy"
)

// Pod is all that routing depends on.
type Pod struct {
	// ContainerID is the sandbox's, of which the node's end of a veth pair has its name.
	ContainerID string
	Interfaces  []Interface // in any order
	// NodeAddresses are the node's own, without those of bridges and pods' links.
	// The first of each family is the one that pods send to.
	NodeAddresses []netip.Addr
	// Peer is the node's end of the default network's interface where another's
	// plugin made it, the zero value where there is none.
	Peer Peer
}

// Peer is the node's end of a veth pair.
type Peer struct {
	Name string
	MAC  net.HardwareAddr
}

// Interface is one interface of a pod. It is read only.
type Interface struct {
	Name string // in the pod
	// Rail numbers the pod's interfaces but the default network's, from 0: it
	// says which routing table is whose, whatever order they come in.
	Rail      int
	Addresses []netip.Prefix // with their prefix lengths, host bits kept
	// NotGiven are those of Addresses that nobody is known to have given the pod: it
	// may have taken them itself, and the node is not led to them.
	NotGiven map[netip.Addr]bool
	Gateways []netip.Addr   // the first of each family counts
	Routes   []policy.Route // of its pools and of its pod; without Gw: over its gateway
	// MAC is what was asked for or what the interface has; nil: it gets one.
	MAC net.HardwareAddr
	// SharesMAC says that it can have no MAC of its own (IPVLAN, IPoIB).
	SharesMAC        bool
	IsDefaultNetwork bool // eth0, usually
	// Foreign says that another's plugin made it: addresses and routes are in the
	// kernel already, Gateways are those of its default routes in main.
	Foreign bool
	// Coordinator is nil where no coordinator stands in the network's chain.
	Coordinator *Options
	// Masters are the node's netdevs below it, for messages.
	Masters []string
}

// maxRail keeps tables below 252: 253 to 255 are the kernel's.
const maxRail = policy.MostNetworks - 1

// validate says why a pod cannot be routed, every reason.
func (p Pod) validate() error {
	var errs []error
	names, rails := map[string]bool{}, map[int]string{}
	addresses := map[netip.Addr]string{}
	defaults := ""
	for _, i := range p.sorted() {
		errs = append(errs, i.validate(addresses)...)
		if names[i.Name] {
			errs = append(errs, fmt.Errorf("interface %s is there twice: want one name each", i.Name))
		}
		names[i.Name] = true
		switch other, taken := rails[i.Rail]; {
		case i.IsDefaultNetwork && defaults != "":
			errs = append(errs, fmt.Errorf("interfaces %s and %s are both the default network's: want one", defaults, i.Name))
		case i.IsDefaultNetwork:
			defaults = i.Name
		case i.Rail < 0 || i.Rail > maxRail:
			errs = append(errs, fmt.Errorf("interface %s is rail %d: want 0 to %d", i.Name, i.Rail, maxRail))
		case taken:
			errs = append(errs, fmt.Errorf("interfaces %s and %s are both rail %d: want one each", other, i.Name, i.Rail))
		default:
			rails[i.Rail] = i.Name
		}
	}
	for _, i := range p.sorted() {
		for _, gw := range i.Gateways {
			if owner := addresses[gw]; owner != "" && !i.Foreign {
				errs = append(errs, i.errorf("gateway %s is the address of %s: want one outside the pod", gw, owner))
			}
		}
	}
	for _, a := range p.NodeAddresses {
		if !a.IsValid() || a.Is4In6() {
			errs = append(errs, fmt.Errorf("node address %s: want an IPv4 or IPv6 address", a))
		}
	}
	return errors.Join(errs...)
}

// sorted are the interfaces in the order in which everything is listed: the
// default network's, then by rail and name.
func (p Pod) sorted() []Interface {
	return slices.SortedStableFunc(slices.Values(p.Interfaces), func(a, b Interface) int {
		if a.IsDefaultNetwork != b.IsDefaultNetwork {
			if a.IsDefaultNetwork {
				return -1
			}
			return 1
		}
		if a.Rail != b.Rail && !a.IsDefaultNetwork {
			return a.Rail - b.Rail
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// validate says what is wrong with one interface. taken has whose each address is.
func (i Interface) validate(taken map[netip.Addr]string) []error {
	if !isName(i.Name) {
		return []error{fmt.Errorf(`interface %q: want the name of a netdev, 1 to 15 bytes without "/", ":", "%%", spaces and control characters, and not lo, all, default or %s`, i.Name, podVeth)}
	}
	var errs []error
	for _, prefix := range i.Addresses {
		a := prefix.Addr()
		switch {
		case !prefix.IsValid() || prefix.Bits() == 0 || !isHost(a):
			errs = append(errs, i.errorf("address %s: want the address of one host with its prefix length", prefix))
		case taken[a] != "" && !a.IsLinkLocalUnicast():
			errs = append(errs, i.errorf("address %s is %s's: want another", a, taken[a]))
		}
		taken[a] = i.Name
	}
	for _, gw := range i.Gateways {
		switch {
		case !isHost(gw):
			errs = append(errs, i.errorf("gateway %s: want the address of one host", gw))
		case !i.Foreign && !i.has(familyOf(gw)):
			errs = append(errs, i.errorf("gateway %s: want one of a family that the interface has an address of", gw))
		}
	}
	return append(errs, i.validateRoutes()...)
}

// validateRoutes says what is wrong with an interface's routes.
func (i Interface) validateRoutes() []error {
	var errs []error
	for _, r := range i.Routes {
		switch {
		case !r.Dst.IsValid() || r.Dst.Addr().Is4In6():
			errs = append(errs, i.errorf("route to %s: want a CIDR", r.Dst))
		case r.Gw.IsValid() && !isGateway(r):
			errs = append(errs, i.errorf("route to %s over %s: want a gateway of the same family", r.Dst, r.Gw))
		}
	}
	if i.Coordinator == nil {
		return errs
	}
	for _, r := range i.Coordinator.PolicyRoutes {
		if !r.Dst.IsValid() || !isGateway(r) {
			errs = append(errs, i.errorf("policyRoutes: %s over %s: want a CIDR and a gateway of the same family", r.Dst, r.Gw))
		}
	}
	return errs
}

func (i Interface) errorf(format string, args ...any) error {
	return fmt.Errorf("interface %s: %s", i.Name, fmt.Sprintf(format, args...))
}

// isGateway says whether a route's gateway can be one of its family.
func isGateway(r policyRoute) bool {
	return isHost(r.Gw) && familyOf(r.Gw) == familyOf(r.Dst.Addr())
}

// isName says whether Linux takes a name as it is, whether people can read it, and
// whether it is free in a pod.
func isName(name string) bool {
	if name == "" || len(name) > 15 || strings.ContainsAny(name, "/:% ") || strings.ContainsFunc(name, unicode.IsControl) {
		return false
	}
	return !slices.Contains([]string{".", "..", "lo", "all", "default", podVeth}, name)
}

// isHost says whether an address can be one host's.
func isHost(a netip.Addr) bool {
	return a.IsValid() && !a.Is4In6() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback()
}

// family is of IP: 4 or 6.
type family int

const (
	ipv4 family = 4
	ipv6 family = 6
)

// families are both, in the order in which everything is listed.
func families() [2]family { return [2]family{ipv4, ipv6} }

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return ipv4
	}
	return ipv6
}

// everything is the destination of a default route.
func (f family) everything() netip.Prefix {
	if f == ipv4 {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// single is the prefix of one address.
func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// isSource says whether others than those on the link can reach an address.
func isSource(p netip.Prefix) bool {
	return p.IsValid() && (p.Addr().Is4() || !p.Addr().IsLinkLocalUnicast())
}

// isSubnet says whether an address brings a subnet with it.
func isSubnet(p netip.Prefix) bool { return isSource(p) && !p.IsSingleIP() }

// sources are the addresses of a family that others can reach, in order.
func (i Interface) sources(f family) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range i.Addresses {
		if familyOf(p.Addr()) == f && isSource(p) {
			all = append(all, p)
		}
	}
	return all
}

// given are those of sources that the pod was given.
func (i Interface) given(f family) []netip.Addr {
	var all []netip.Addr
	for _, p := range i.sources(f) {
		if !i.NotGiven[p.Addr()] {
			all = append(all, p.Addr())
		}
	}
	return all
}

// has says whether the interface speaks a family.
func (i Interface) has(f family) bool { return i.source(f).IsValid() }

// source is the first address of a family, or the zero Addr.
func (i Interface) source(f family) netip.Addr {
	for _, p := range i.Addresses {
		if familyOf(p.Addr()) == f && isSource(p) {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// owns says whether an address is the interface's.
func (i Interface) owns(a netip.Addr) bool {
	return slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr() == a })
}

// subnets are what the interface reaches directly, each once, with the address
// that is the source there.
func (i Interface) subnets(f family) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range i.Addresses {
		if familyOf(p.Addr()) == f && isSubnet(p) && !slices.ContainsFunc(all, func(q netip.Prefix) bool { return q.Masked() == p.Masked() }) {
			all = append(all, p)
		}
	}
	return all
}

// reaches says whether a gateway is on one of the interface's subnets.
func (i Interface) reaches(gw netip.Addr) bool {
	if gw.Is6() && gw.IsLinkLocalUnicast() {
		return true
	}
	return slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Contains(gw) })
}

// gateway is where the interface sends what it knows no other way for: a
// default among its routes, else its gateway; the zero Addr if it has neither.
func (i Interface) gateway(f family) netip.Addr {
	if !i.has(f) {
		return netip.Addr{}
	}
	for _, r := range i.Routes {
		if r.Dst.Masked() == f.everything() && r.Gw.IsValid() {
			return r.Gw
		}
	}
	return i.plainGateway(f)
}

// plainGateway is the first of a family.
func (i Interface) plainGateway(f family) netip.Addr {
	for _, gw := range i.Gateways {
		if familyOf(gw) == f {
			return gw
		}
	}
	return netip.Addr{}
}

// onMasters tells where an interface is, for messages.
func (i Interface) onMasters() string {
	if len(i.Masters) == 0 {
		return i.Name
	}
	return i.Name + " (on " + strings.Join(i.Masters, ", ") + ")"
}
