package cniserver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"

	"railhead/internal/attach"
	"railhead/internal/policy"
)

// resultOfInterface is an interface of ours as a CNI result.
func resultOfInterface(i attach.Interface, made attach.Made, sandbox string) *types100.Result {
	r := &types100.Result{
		CNIVersion: types100.ImplementedSpecVersion,
		Interfaces: []*types100.Interface{{Name: made.Name, Mac: made.MAC.String(), Mtu: made.MTU, Sandbox: sandbox}},
	}
	r.IPs, r.Routes = ipsOf(i.Addresses, i.Gateways), routesOf(i.Gateways, i.Routes)
	for _, ip := range r.IPs {
		ip.Interface = new(0)
	}
	return r
}

// resultOfIPAM is what an IPAM plugin answers.
func resultOfIPAM(addresses []netip.Prefix, gateways []netip.Addr, routes []policy.Route) *types100.Result {
	return &types100.Result{CNIVersion: types100.ImplementedSpecVersion, IPs: ipsOf(addresses, gateways), Routes: routesOf(gateways, routes)}
}

// resultOfPlanned is an interface of ours as its record has it.
func resultOfPlanned(i attach.PlannedInterface, sandbox string) *types100.Result {
	var whole attach.Interface
	whole.Name, whole.Addresses, whole.Gateways = i.Name, i.Addresses, i.Gateways
	return resultOfInterface(whole, attach.Made{Name: i.Name, MAC: macOf(i.MAC), MTU: i.MTU}, sandbox)
}

// ipsOf are addresses as results have them, each with the gateway of its family.
func ipsOf(addresses []netip.Prefix, gateways []netip.Addr) []*types100.IPConfig {
	var list []*types100.IPConfig
	for _, prefix := range addresses {
		ip := &types100.IPConfig{Address: ipNet(prefix)}
		for _, gw := range gateways {
			if gw.Is4() == prefix.Addr().Is4() {
				ip.Gateway = gw.AsSlice()
				break
			}
		}
		list = append(list, ip)
	}
	return list
}

// routesOf are an interface's routes: the default ones, and those of its pools.
func routesOf(gateways []netip.Addr, routes []policy.Route) []*types.Route {
	var list []*types.Route
	families := map[bool]bool{}
	for _, gw := range gateways {
		if families[gw.Is4()] {
			continue
		}
		families[gw.Is4()] = true
		everything := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		if gw.Is4() {
			everything = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		}
		list = append(list, &types.Route{Dst: ipNet(everything), GW: gw.AsSlice()})
	}
	for _, r := range routes {
		list = append(list, &types.Route{Dst: ipNet(r.Dst), GW: r.Gw.AsSlice()})
	}
	return list
}

func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// takeIPAM gives an interface what another's IPAM plugin said: addresses, and the
// routes that it names. A gateway alone makes no default route.
func takeIPAM(i *attach.Interface, r *types100.Result) {
	gateway := func(dst netip.Prefix) (gw netip.Addr) {
		for _, ip := range r.IPs {
			if at, ok := netip.AddrFromSlice(ip.Gateway); ok && at.Unmap().Is4() == dst.Addr().Is4() {
				return at.Unmap()
			}
		}
		return gw
	}
	for _, ip := range r.IPs {
		if prefix, ok := prefixOf(ip.Address); ok {
			i.Addresses = append(i.Addresses, prefix)
		}
	}
	for _, route := range r.Routes {
		dst, ok := prefixOf(route.Dst)
		if !ok {
			continue
		}
		gw := gateway(dst)
		if own, has := netip.AddrFromSlice(route.GW); has {
			gw = own.Unmap()
		}
		switch {
		case dst.Bits() != 0:
			i.Routes = append(i.Routes, policy.Route{Dst: dst.Masked(), Gw: gw})
		case gw.IsValid():
			i.Gateways = append(i.Gateways, gw)
		}
	}
}

// addressesIn are the addresses that a result gives to a pod: plugins may tell of those
// of the node's links, too, which are in no sandbox.
func addressesIn(r *types100.Result) []netip.Prefix {
	var list []netip.Prefix
	for _, ip := range r.IPs {
		if at := ip.Interface; at != nil && (*at < 0 || *at >= len(r.Interfaces) || r.Interfaces[*at] == nil || r.Interfaces[*at].Sandbox == "") {
			continue
		}
		if prefix, ok := prefixOf(ip.Address); ok {
			list = append(list, prefix)
		}
	}
	return list
}

func prefixOf(n net.IPNet) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	ones, bits := n.Mask.Size()
	addr = addr.Unmap()
	if bits == 128 && addr.Is4() {
		ones -= 96
	}
	prefix := netip.PrefixFrom(addr, ones)
	return prefix, prefix.IsValid()
}

// printed is a result in a CNI version, as the runtime reads it.
func printed(r *types100.Result, version string) (json.RawMessage, error) {
	converted, err := r.GetAsVersion(version)
	if err != nil {
		return nil, fmt.Errorf("result in cniVersion %s: %w", strconv.Quote(version), err)
	}
	return json.Marshal(converted)
}

// reprinted is an answer that was given before, in another version maybe.
func reprinted(answer json.RawMessage, version string) (json.RawMessage, error) {
	r, err := create.CreateFromBytes(answer)
	if err != nil {
		return nil, fmt.Errorf("the recorded result: %w", err)
	}
	newest, err := types100.NewResultFromResult(r)
	if err != nil {
		return nil, fmt.Errorf("the recorded result: %w", err)
	}
	return printed(newest, version)
}

// storedResult reads a result as records have it: in the newest version.
func storedResult(raw json.RawMessage) (*types100.Result, error) {
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // no result is no error
	}
	var r types100.Result
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("recorded result: %w", err)
	}
	return &r, nil
}
