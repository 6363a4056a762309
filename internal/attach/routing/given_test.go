package routing

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNotGiven leads the node to no address that the pod was not given, while the pod
// itself is routed by all that it has.
func TestNotGiven(t *testing.T) {
	t.Parallel()
	o := coordinated(t, `{"type": "coordinator"}`)
	for _, tt := range []struct {
		name     string
		more     []netip.Prefix // that net1 has
		notGiven []netip.Addr
		routes   []string // of the node
		families []int    // of its rules
		notes    []string
	}{
		{
			name: "all given", more: prefixesOf("192.0.2.66/32", "fd00:66::66/128"),
			routes: []string{"172.16.11.10/32", "192.0.2.66/32", "fd00:66::66/128"}, families: []int{4, 6},
		},
		{
			name: "some of each family", more: prefixesOf("192.0.2.66/32", "192.0.2.67/32", "fd00:66::66/128", "fd00:11::10/64"),
			notGiven: addrs("192.0.2.66", "192.0.2.67", "fd00:66::66"),
			routes:   []string{"172.16.11.10/32", "fd00:11::10/128"}, families: []int{4, 6},
			notes: []string{
				"2 of its IPv4 addresses, such as 192.0.2.66, are in no plugin's result: the node reaches them by its network only",
				"1 of its IPv6 addresses, such as fd00:66::66, are in no plugin's result: the node reaches them by its network only",
			},
		},
		{
			name: "all of a family", more: prefixesOf("fd00:66::66/128"), notGiven: addrs("fd00:66::66"),
			routes: []string{"172.16.11.10/32"}, families: []int{4},
			notes: []string{"1 of its IPv6 addresses, such as fd00:66::66, are in no plugin's result: the node reaches them by its network only"},
		},
		{
			name: "nothing", notGiven: addrs("172.16.11.10"),
			notes: []string{"1 of its IPv4 addresses, such as 172.16.11.10, are in no plugin's result: the node reaches them by its network only"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			net1 := rail(0, 24, o)
			net1.Foreign, net1.Addresses, net1.NotGiven = true, append(net1.Addresses, tt.more...), map[netip.Addr]bool{}
			for _, a := range tt.notGiven {
				net1.NotGiven[a] = true
			}
			r, err := Plan(overlay(calicoDual(), net1))
			if err != nil {
				t.Fatal(err)
			}
			checkLed(t, r, tt.routes, tt.families)
			var notes []string
			for _, n := range r.Notes {
				if strings.Contains(n.Text, "in no plugin's result") {
					notes = append(notes, n.Text)
				}
			}
			if diff := cmp.Diff(tt.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			for _, a := range net1.Addresses {
				if !slices.ContainsFunc(r.Pod.Rules, func(r Rule) bool { return r.From == single(a.Addr()) && r.Table == tableRails }) {
					t.Errorf("no rule from %s in the pod: %+v", a.Addr(), r.Pod.Rules)
				}
			}
		})
	}
}

// checkLed wants the node to have these routes, each with its neighbour, and rules of
// these families.
func checkLed(t *testing.T, r Result, routes []string, families []int) {
	t.Helper()
	var led, neighbours []string
	for _, route := range r.Host.Routes {
		led = append(led, route.Dst.String())
	}
	for _, n := range r.Host.Neighbours {
		neighbours = append(neighbours, single(n.IP).String())
	}
	var ruled []int
	for _, rule := range r.Host.Rules {
		ruled = append(ruled, rule.Family)
	}
	slices.Sort(neighbours)
	if diff := cmp.Diff([]any{routes, routes, families}, []any{led, neighbours, ruled}); diff != "" {
		t.Errorf("routes, neighbours and rules of the node (-want +got):\n%s", diff)
	}
}
