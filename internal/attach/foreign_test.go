package attach

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// foreignRails are rails that others' plugins made, each of which adds a default
// route beside those that there are, as those of containernetworking do: of IPv6
// the kernel makes one route of them.
func (w *world) foreignRails(rails int, change func(*routing.Options)) Pod {
	w.tb.Helper()
	pod := w.podOf(eth0())
	for n := range rails {
		i := rail(n, coordinated(change), "46")
		w.must(w.node, rtnl.LinkAdd{Name: i.Name, Kind: "macvlan", Mode: "bridge", Parent: 110 + n, Index: 50 + n, NetNS: int(w.ns.Fd()), Up: true})
		for _, a := range i.Addresses {
			w.must(w.pod, address(50+n, a.String()))
		}
		for _, gw := range i.Gateways {
			r := rtnl.Route{Dst: prefix("0.0.0.0/0"), LinkIndex: 50 + n, Gateway: gw}
			if gw.Is6() {
				r.Dst, r.Priority = prefix("::/0"), 1024
			}
			w.must(w.pod, rtnl.RouteAdd{Route: r, Append: true})
		}
		i.Link, i.Foreign = Link{}, true
		pod.Interfaces = append(pod.Interfaces, i)
	}
	return pod
}

// defaults are the default routes of a table of the pod: family and index of the link.
func (w *world) defaults(table int) []string {
	w.tb.Helper()
	all, err := w.pod.Routes()
	if err != nil {
		w.tb.Fatal(err)
	}
	var list []string
	for _, r := range all {
		if r.Table != table || r.Dst.Bits() != 0 || r.Type != "unicast" {
			continue
		}
		for _, hop := range waysOf(r) {
			list = append(list, fmt.Sprintf("%s %d", map[bool]string{true: "inet", false: "inet6"}[r.Dst.Addr().Is4()], hop.LinkIndex))
		}
	}
	slices.Sort(list)
	return list
}

// TestForeignDefaults leaves one default route in the main table of those that
// others' plugins made, and brings all of them back.
func TestForeignDefaults(t *testing.T) {
	t.Parallel()
	for nic, index := range map[string]int{"": 3, "net2": 51} {
		t.Run("default route "+nic, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.calico()
				pod := w.foreignRails(3, func(o *routing.Options) { o.DefaultRouteNIC = nic })
				before, all := w.snapshot(), w.defaults(254)
				plan := w.plan(pod)
				for range 2 {
					if _, err := w.a.Apply(t.Context(), plan); err != nil {
						t.Fatal(err)
					}
					for table, link := range map[int]int{254: index, 99: 3, 101: 51} {
						if diff := cmp.Diff([]string{fmt.Sprintf("inet %d", link), fmt.Sprintf("inet6 %d", link)}, w.defaults(table)); diff != "" {
							t.Errorf("table %d (-want +got):\n%s", table, diff)
						}
					}
					if err := w.a.Check(t.Context(), plan); err != nil {
						t.Error(err)
					}
					if err := w.a.Undo(t.Context(), plan, nil); err != nil {
						t.Error(err)
					}
					if diff := cmp.Diff(all, w.defaults(254)); diff != "" {
						t.Errorf("undone (-before +after):\n%s", diff)
					}
				}
				w.same("undone", before)
			})
		})
	}
}
