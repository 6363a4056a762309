package cniserver

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/attach/routing"
	"railhead/internal/cnicall"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/npwg"
)

// interfacesThere are those that the pod has now, the ones with a coordinator so
// far with its options and the addresses and gateways that it was told of. Of the
// others, and of routes, the kernel knows best: what a running pod has put there
// itself, is routed in the pod alone.
func (s *Server) interfacesThere(a *attempt) ([]attach.Interface, error) {
	names, err := s.linksIn(a.ns.FD())
	if err != nil {
		return nil, err
	}
	config := s.config.Selection
	config.Interface = "eth0"
	selected, err := npwg.Networks(npwg.Pod{Namespace: a.pod.Namespace, Name: a.pod.Name, Annotations: a.pod.Annotations}, config)
	if err != nil {
		return nil, coded(cnicall.CodeConfig, err)
	}
	rails := railsOf(selected, names)
	var list []attach.Interface
	for _, name := range names {
		rail, is := rails[name]
		if !is {
			continue
		}
		i := attach.Interface{Interface: routing.Interface{Name: name, Rail: max(rail, 0), IsDefaultNetwork: rail < 0, Foreign: true}}
		if err := s.coordinated(a, &i); err != nil {
			return nil, coded(cnicall.CodeConfig, err)
		}
		if o := i.Coordinator; o != nil && !slices.Contains(names, o.DefaultRouteNIC) {
			if _, comes := rails[o.DefaultRouteNIC]; comes {
				o.DefaultRouteNIC = "" // until the call for that one
			}
		}
		list = append(list, i)
	}
	return list, nil
}

// railsOf numbers a pod's interfaces as its networks do, -1 for the default one;
// those that another runtime added of itself go by the number in their name.
func railsOf(selected []npwg.Selected, names []string) map[string]int {
	rails := map[string]int{}
	for i, one := range selected {
		rails[one.Interface] = i - 1
	}
	for _, name := range names {
		number, is := strings.CutPrefix(name, "net")
		n, err := strconv.Atoi(number)
		if _, known := rails[name]; !known && is && err == nil && n > 0 {
			rails[name] = n - 1
		}
	}
	return rails
}

// coordinated fills in what an interface's coordinator says and was told, if it has
// one.
func (s *Server) coordinated(a *attempt, i *attach.Interface) error {
	for _, n := range a.att.Networks {
		if n.Interface != i.Name || len(n.Delegated) == 0 {
			continue
		}
		spec, status, err := s.config.Cluster.Coordinator()
		if err != nil {
			return err
		}
		o, err := routing.Merge(routing.Sources{
			Cluster: spec, Status: status, Element: n.Delegated[0].Config, DefaultRouteNIC: a.pod.Annotations[v2beta1.AnnotationDefaultRouteNIC],
		})
		if err != nil {
			return err
		}
		result, err := last(n)
		if err != nil || result == nil {
			return err
		}
		i.Coordinator, i.Addresses, i.Gateways = &o, addressesIn(result), gatewaysIn(result)
	}
	return nil
}

// linksIn are the links of a namespace, in their order.
func (s *Server) linksIn(fd int) ([]string, error) {
	client, err := s.config.Dial(&rtnl.Config{NetNS: fd})
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it is only asked
	links, err := client.Links()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.Name
	}
	return names, nil
}

// gatewaysIn are those of a result.
func gatewaysIn(r *types100.Result) []netip.Addr {
	var list []netip.Addr
	for _, ip := range r.IPs {
		if gw, ok := netip.AddrFromSlice(ip.Gateway); ok && !slices.Contains(list, gw.Unmap()) {
			list = append(list, gw.Unmap())
		}
	}
	return list
}
