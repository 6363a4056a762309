package annotation

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy"
)

func TestPools(t *testing.T) {
	t.Parallel()
	got, errs := Pools(nil, `[{"interface":"eth0","ipv4":["b","a*"]},{"interface":"net1","ipv6":["c"],"cleangateway":true}]`)
	want := []Choice{{Interface: "eth0", IPv4: []string{"b", "a*"}}, {Interface: "net1", IPv6: []string{"c"}, CleanGateway: true}}
	if diff := cmp.Diff(want, got); diff != "" || len(errs) > 0 {
		t.Errorf("%v; -want +got:\n%s", errs, diff)
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	got, errs := Pool(nil, `{"ipv4":["b","a"],"ipv6":[],"cleangateway":true}`)
	want := Choice{IPv4: []string{"b", "a"}, IPv6: []string{}, CleanGateway: true}
	if diff := cmp.Diff(want, got); diff != "" || len(errs) > 0 {
		t.Errorf("%v; -want +got:\n%s", errs, diff)
	}
}

func TestPoolNames(t *testing.T) {
	t.Parallel()
	got, errs := PoolNames(nil, `["b","a[0-9]"]`)
	if diff := cmp.Diff([]string{"b", "a[0-9]"}, got); diff != "" || len(errs) > 0 {
		t.Errorf("%v; -want +got:\n%s", errs, diff)
	}
	if got, errs := PoolNames(nil, `["b",""]`); got != nil || len(errs) != 1 {
		t.Errorf("of a list with an empty name: %q, %v", got, errs)
	}
}

// TestRoutes wants the good routes with the error of the bad one.
func TestRoutes(t *testing.T) {
	t.Parallel()
	got, errs := Routes(field.NewPath("a"), `[{"dst":"10.2.3.4/16","gw":"10.1.0.1"},{"dst":"x","gw":"10.1.0.1"},{"dst":"fd00::/64","gw":"fd01::1"}]`)
	want := []policy.Route{
		{Dst: netip.MustParsePrefix("10.2.0.0/16"), Gw: netip.MustParseAddr("10.1.0.1")},
		{Dst: netip.MustParsePrefix("fd00::/64"), Gw: netip.MustParseAddr("fd01::1")},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	checkErrors(t, errs, []string{"a[1].dst"})
}

// FuzzPools wants what was understood to be understood again when it is written
// as JSON.
func FuzzPools(f *testing.F) {
	f.Add(`[{"interface":"eth0","ipv4":["a*"]},{"interface":"net1","ipv6":["b"],"cleangateway":true}]`)
	f.Add(`[{"ipv4":["a"]},{"ipv4":["b","[c-d]"]}]`)
	f.Add(`[{"Interface":"eth0","IPv4":["a"]},{"interface":"eth0"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		list, errs := Pools(nil, text)
		if len(errs) > 0 {
			return
		}
		written := make([]choice, len(list))
		for i, c := range list {
			written[i] = choice{IPv4: c.IPv4, IPv6: c.IPv6, CleanGateway: c.CleanGateway}
			if c.Interface != "" {
				written[i].Interface = &c.Interface
			}
		}
		again, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		got, errs := Pools(nil, string(again))
		if diff := cmp.Diff(list, got, cmpopts.EquateEmpty()); diff != "" || len(errs) > 0 {
			t.Errorf("%q, written as %s: %v; -first +again:\n%s", text, again, errs, diff)
		}
	})
}

// FuzzRoutes wants routes to be of one family each, and to be read again as
// they are.
func FuzzRoutes(f *testing.F) {
	f.Add(`[{"dst":"10.2.0.0/16","gw":"10.1.0.1"},{"dst":"fd00::1/64","gw":"fd01::1"}]`)
	f.Add(`[{"dst":"10.2.0.0/16","gw":"::ffff:10.1.0.1"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		routes, _ := Routes(nil, text)
		var written []map[string]string
		for _, r := range routes {
			if r.Dst.Addr().Is4() != r.Gw.Is4() || r.Dst != r.Dst.Masked() {
				t.Errorf("%q: route to %s by %s", text, r.Dst, r.Gw)
			}
			written = append(written, map[string]string{"dst": r.Dst.String(), "gw": r.Gw.String()})
		}
		again, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		got, errs := Routes(nil, string(again))
		if len(errs) > 0 || len(got) != len(routes) {
			t.Fatalf("%q, written as %s: %v, %v", text, again, got, errs)
		}
		for i := range got {
			if got[i] != routes[i] {
				t.Errorf("%q, written as %s: route %d is %v, want %v", text, again, i, got[i], routes[i])
			}
		}
	})
}
