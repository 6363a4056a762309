package attach

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// TestForeignNotGiven leads the node to what an interface of another's plugin both has
// and was given, and routes the pod by what it has.
func TestForeignNotGiven(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		given, has []string
		want       []string // that the node is led to
	}{
		{"nothing", nil, []string{"172.16.11.10/24", "fd00:11::10/64"}, nil},
		{"all", []string{"172.16.11.10/24", "fd00:11::10/64"}, []string{"172.16.11.10/24", "fd00:11::10/64"}, []string{"172.16.11.10/32", "fd00:11::10/128"}},
		{"without the subnet", []string{"172.16.11.10/32"}, []string{"172.16.11.10/24"}, []string{"172.16.11.10/32"}},
		{"more is there", []string{"172.16.11.10/24"}, []string{"172.16.11.10/24", "192.0.2.66/32", "fd00:66::66/128"}, []string{"172.16.11.10/32"}},
		{"another is there", []string{"172.16.11.10/24"}, []string{"192.0.2.66/32"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.calico()
				w.must(w.node, rtnl.LinkAdd{Name: "net1", Kind: "macvlan", Mode: "bridge", Parent: 110, Index: 50, NetNS: int(w.ns.Fd()), Up: true})
				i := rail(0, coordinated(nil), "4")
				i.Link, i.Foreign, i.Addresses = Link{}, true, nil
				for _, text := range tt.given {
					i.Addresses = append(i.Addresses, prefix(text))
				}
				for _, text := range tt.has {
					w.must(w.pod, address(50, text))
				}
				plan := w.plan(w.podOf(eth0(), i))
				var led []string
				for _, r := range plan.Routing.Host.Routes {
					led = append(led, r.Dst.String())
				}
				slices.Sort(led)
				if diff := cmp.Diff(tt.want, led); diff != "" {
					t.Errorf("the node is led to (-want +got):\n%s", diff)
				}
				for _, text := range tt.has {
					a := prefix(text).Addr()
					from := netip.PrefixFrom(a, a.BitLen())
					if !slices.ContainsFunc(plan.Routing.Pod.Rules, func(r routing.Rule) bool { return r.From == from && r.Table == 100 }) {
						t.Errorf("no rule from %s in the pod: %+v", a, plan.Routing.Pod.Rules)
					}
				}
			})
		})
	}
}
