package selection

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"railhead/internal/policy"
)

func route(dst, gw string) policy.Route {
	return policy.Route{Dst: netip.MustParsePrefix(dst), Gw: netip.MustParseAddr(gw)}
}

func pool(subnet, gateway string, routes ...policy.Route) policy.Pool {
	p := policy.Pool{Name: subnet, Subnet: netip.MustParsePrefix(subnet), Routes: routes}
	if gateway != "" {
		p.Gateway = netip.MustParseAddr(gateway)
	}
	return p
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	given := []Given{
		{"net1", pool("10.0.0.0/24", "10.0.0.254", route("10.50.0.0/16", "10.0.0.253"), route("10.51.0.0/16", "10.0.0.253"))},
		{"net1", pool("fd00::/64", "fd00::1", route("fd50::/64", "fd00::2"))},
		{"net2", pool("10.0.0.0/24", "")},
		{"net3", pool("10.1.0.0/24", "10.1.0.254", route("10.50.0.0/16", "10.1.0.253"))},
	}
	ofPod := []policy.Route{
		route("10.60.0.0/16", "10.1.0.1"), route("10.50.0.0/16", "10.0.0.9"), route("10.70.0.0/16", "192.168.0.1"), route("fd60::/64", "fd00::9"),
	}
	got, warnings := Routes(given, ofPod)
	want := []InterfaceRoutes{
		{
			Interface: "net1", Gateways: []netip.Addr{netip.MustParseAddr("10.0.0.254"), netip.MustParseAddr("fd00::1")},
			Routes: []policy.Route{
				route("10.51.0.0/16", "10.0.0.253"), route("fd50::/64", "fd00::2"), route("10.50.0.0/16", "10.0.0.9"), route("fd60::/64", "fd00::9"),
			},
		},
		{Interface: "net2"},
		{
			Interface: "net3", Gateways: []netip.Addr{netip.MustParseAddr("10.1.0.254")},
			Routes: []policy.Route{route("10.50.0.0/16", "10.1.0.253"), route("10.60.0.0/16", "10.1.0.1")},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"the route to 10.70.0.0/16 has no effect: no interface of the pod has a subnet with its gateway 192.168.0.1"}, warnings); diff != "" {
		t.Errorf("warnings: -want +got:\n%s", diff)
	}
}
