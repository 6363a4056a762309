package attachbench

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rtnl"
)

// kernel is what there is in a pod's namespace.
type kernel struct {
	links     []rtnl.Link
	addresses []rtnl.Address
	routes    []rtnl.Route
	rules     []rtnl.Rule
}

func read(p *pod) (kernel, error) {
	links, err1 := p.inside.Links()
	addresses, err2 := p.inside.Addresses()
	routes, err3 := p.inside.Routes()
	rules, err4 := p.inside.Rules()
	return kernel{links, addresses, routes, rules}, errors.Join(err1, err2, err3, err4)
}

// features are what a pod's interfaces can, whichever addresses they have and
// however their tables are numbered: that is what has to be the same on both sides.
func features(p *pod) ([]string, error) {
	k, err := read(p)
	if err != nil {
		return nil, err
	}
	all := k.eth0()
	for i := range rails {
		for _, l := range k.links {
			if l.Name != name(i) {
				continue
			}
			all = append(all, fmt.Sprintf("%s: %s %s of mtu %d, up %t", l.Name, l.Kind, l.Mode, l.MTU, l.Up))
			all = append(all, k.addressed(l)...)
		}
	}
	return all, nil
}

// eth0 are the features of the cluster's own network.
func (k kernel) eth0() []string {
	var all []string
	for _, l := range k.links {
		if l.Name != "eth0" {
			continue
		}
		all = append(all, fmt.Sprintf("eth0: %s, up %t", l.Kind, l.Up))
		for _, r := range k.routes {
			if r.Table == unix.RT_TABLE_MAIN && r.Dst == everywhere() {
				all = append(all, fmt.Sprintf("eth0: to %s by %s, over it %t", r.Dst, r.Gateway, r.LinkIndex == l.Index))
			}
		}
	}
	return all
}

// addressed are the features of a rail's address.
func (k kernel) addressed(l rtnl.Link) []string {
	var all []string
	for _, a := range k.addresses {
		if a.LinkIndex != l.Index || !a.Prefix.Addr().Is4() {
			continue
		}
		all = append(all, fmt.Sprintf("%s: address in %s", l.Name, a.Prefix.Masked()))
		for _, r := range k.rules {
			if !r.Src.IsValid() || r.Src.Addr() != a.Prefix.Addr() || !r.Src.IsSingleIP() {
				continue
			}
			for _, way := range k.ways(r.Table, l.Index) {
				all = append(all, l.Name+": from its address "+way)
			}
		}
	}
	return all
}

// ways are a table's routes over a link, without what else ours has there.
func (k kernel) ways(table, link int) []string {
	var all []string
	for _, r := range k.routes {
		if r.Table == table && r.LinkIndex == link && r.Dst.Addr().Is4() {
			all = append(all, fmt.Sprintf("to %s by %s", r.Dst, r.Gateway))
		}
	}
	slices.Sort(all)
	return all
}

// wantFeatures are what both sides are to give a pod.
func wantFeatures() []string {
	want := []string{"eth0: veth, up true", "eth0: to 0.0.0.0/0 by 10.244.0.1, over it true"}
	for i := range rails {
		n := name(i)
		want = append(want, n+": macvlan bridge of mtu 9000, up true", fmt.Sprintf("%s: address in %s", n, subnet(i)),
			fmt.Sprintf("%s: from its address to 0.0.0.0/0 by %s", n, gateway(i)),
			fmt.Sprintf("%s: from its address to %s by invalid IP", n, subnet(i)))
	}
	return want
}

// checkFeatures wants a way to give a pod all that, and to take it away again.
func checkFeatures(b *testing.B, w way, p *pod) {
	b.Helper()
	before := linkNames(b, p)
	if err := w.add(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	got, err := features(p)
	if err != nil {
		b.Fatal(err)
	}
	if diff := cmp.Diff(wantFeatures(), got); diff != "" {
		b.Errorf("%T (-want +got):\n%s", w, diff)
	}
	if err := w.del(b.Context(), p); err != nil {
		b.Fatal(err)
	}
	if diff := cmp.Diff(before, linkNames(b, p)); diff != "" {
		b.Errorf("%T, after DEL (-want +got):\n%s", w, diff)
	}
}

// linkNames are the pod's links, and how many rules it has.
func linkNames(b *testing.B, p *pod) []string {
	b.Helper()
	k, err := read(p)
	if err != nil {
		b.Fatal(err)
	}
	names := []string{fmt.Sprintf("%d rules", len(k.rules))}
	for _, l := range k.links {
		names = append(names, l.Name)
	}
	return names
}
