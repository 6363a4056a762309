package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attach"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/selection"
	"railhead/internal/npwg"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// given is what a pod was given of our pools.
type given struct {
	assignment holder.Assignment
	routes     []selection.InterfaceRoutes
	clean      map[string]bool   // interfaces that get no default route
	elsewhere  map[string]string // interfaces with an address of a pool that they would not choose now, and which
	warnings   []string
}

// choose says which pools the interfaces of a pod take addresses of.
func (s *Server) choose(ctx context.Context, pod *metav1.PartialObjectMetadata, interfaces []selection.Interface) (selection.Selection, error) {
	namespace, err := s.config.Cluster.Namespace(ctx, pod.Namespace)
	if err != nil {
		return selection.Selection{}, fmt.Errorf("namespace %s: %w", pod.Namespace, err)
	}
	above, err := s.config.Cluster.Above(ctx, pod)
	if err != nil {
		return selection.Selection{}, podNamed{fmt.Errorf("what is above pod %s/%s: %w", pod.Namespace, pod.Name, err)}
	}
	// Of what was not read yet it would say that there is none, or choose otherwise.
	if err := s.config.Cluster.Ready(); err != nil {
		return selection.Selection{}, coded(cnicall.CodeTryAgain, fmt.Errorf("the agent does not know yet all that addresses are chosen by: %w", err))
	}
	node, _ := s.config.Cluster.Node()
	chosen, err := selection.Select(s.config.Cluster.Catalog(), &selection.Facts{
		Pod: pod.ObjectMeta, Namespace: *namespace, Node: node, Above: above, Interfaces: interfaces,
	})
	if err == nil {
		return chosen, nil
	}
	if err = (podNamed{err}); !errors.Is(err, selection.ErrNotYet) {
		err = coded(cnicall.CodeConfig, err)
	}
	return chosen, err
}

// interfacesOf are what the networks of a pod say of addresses.
func interfacesOf(list []*network) ([]selection.Interface, error) {
	interfaces := make([]selection.Interface, len(list))
	var errs []error
	for i, n := range list {
		one := selection.Interface{
			Name: n.selected.Interface, IPs: n.selected.IPs,
			Network: types.NamespacedName{Namespace: n.selected.Namespace, Name: n.selected.Name},
		}
		text, err := configOf(n.chain)
		if err == nil {
			err = one.Configure(text)
		}
		errs = append(errs, err)
		if one.Pools.MatchMasterSubnet {
			one.Parent = parentOf(n.made.Link)
		}
		interfaces[i] = one
	}
	return interfaces, coded(cnicall.CodeConfig, join(errs))
}

// configOf is a chain as the configuration that it was.
func configOf(c npwg.Chain) (string, error) {
	plugins := make([]json.RawMessage, len(c.Plugins))
	for i, p := range c.Plugins {
		plugins[i] = p.Config
	}
	text, err := json.Marshal(map[string]any{"plugins": plugins})
	return string(text), err
}

// parentOf is the netdev that a link stands on; nil where it is not there: what
// is made for the first pod has no addresses before.
func parentOf(link attach.Link) *selection.Parent {
	name := link.Parent.Name
	if name == "" {
		name = link.Device.Name
	}
	netdev, err := net.InterfaceByName(name)
	if err != nil {
		return nil
	}
	addresses, err := netdev.Addrs()
	if err != nil {
		return nil
	}
	parent := &selection.Parent{Name: name}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			parent.Addresses = append(parent.Addresses, prefix)
		}
	}
	return parent
}

// wantsAddresses says whether any interface takes an address of our pools.
func wantsAddresses(interfaces []selection.Interface) bool {
	return slices.ContainsFunc(interfaces, func(i selection.Interface) bool { return i.IPAM })
}

// assign has a pod given its addresses of our pools; none where it wants none.
func (s *Server) assign(ctx context.Context, key holder.Key, pod *metav1.PartialObjectMetadata, interfaces []selection.Interface) (given, error) {
	unknown := annotation.UnknownOfPod(pod.Annotations)
	if !wantsAddresses(interfaces) {
		return given{warnings: unknown}, nil
	}
	chosen, err := s.choose(ctx, pod, interfaces)
	if err != nil {
		return given{}, err
	}
	a, err := s.addresses(ctx, pod, chosen.Request(key))
	if err != nil {
		return given{}, err
	}
	g := given{assignment: a, clean: map[string]bool{}, elsewhere: map[string]string{}, warnings: append(unknown, chosen.Warnings...)}
	for _, nic := range chosen.NICs {
		g.clean[nic.Interface] = nic.CleanGateway
	}
	err = s.route(&g, chosen)
	g.warnings = policy.FirstWarnings(g.warnings)
	return g, err
}

// addresses waits for the addresses that a pod asks for. Where that takes long, the
// pod's people are told what it waits for.
func (s *Server) addresses(ctx context.Context, pod *metav1.PartialObjectMetadata, request holder.Request) (holder.Assignment, error) {
	patience := time.AfterFunc(waitingAfter, func() { s.tellWaiting(ctx, pod, request.Key) })
	defer patience.Stop()
	return s.config.Addresses.Assign(ctx, request)
}

// route adds the routes that come with the addresses.
func (s *Server) route(g *given, chosen selection.Selection) error {
	var pools []selection.Given
	for _, a := range g.assignment.Addresses {
		pool, ok := poolOf(chosen, a)
		if !ok {
			g.elsewhere[a.Interface] = a.Pool
			if pool, ok = s.config.Cluster.Catalog().Pool(a.Pool); !ok {
				return coded(cnicall.CodeTryAgain, fmt.Errorf("interface %s has address %s of SpiderIPPool %s, which is not known: its gateway and routes are neither", a.Interface, a.Prefix.Addr(), a.Pool))
			}
		}
		pools = append(pools, selection.Given{Interface: a.Interface, Pool: pool})
	}
	var warnings []string
	g.routes, warnings = selection.Routes(pools, chosen.Routes)
	g.warnings = append(g.warnings, warnings...)
	return nil
}

// poolOf is the pool of an address among those that were chosen from.
func poolOf(chosen selection.Selection, a holder.Assigned) (policy.Pool, bool) {
	for _, nic := range chosen.NICs {
		if nic.Interface != a.Interface {
			continue
		}
		for _, f := range nic.Families {
			for _, p := range f.Pools {
				if p.Name == a.Pool {
					return p, true
				}
			}
		}
	}
	return policy.Pool{}, false
}

// of is what one interface was given.
func (g *given) of(name string) (addresses []netip.Prefix, gateways []netip.Addr, routes []policy.Route) {
	for _, a := range g.assignment.Addresses {
		if a.Interface == name {
			addresses = append(addresses, a.Prefix)
		}
	}
	for _, r := range g.routes {
		if r.Interface != name {
			continue
		}
		routes = r.Routes
		if !g.clean[name] {
			gateways = r.Gateways
		}
	}
	return addresses, gateways, routes
}

// doubtful says whether somebody else may still have an address.
func (g *given) doubtful(addr netip.Addr) bool {
	for _, a := range g.assignment.Addresses {
		if a.Prefix.Addr() == addr {
			return a.Doubtful
		}
	}
	return false
}
