package attachbench

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

// wantFeatures are those of a class.
func wantFeatures(c class) []string {
	want := []string{"eth0: veth, up true", "eth0: to 0.0.0.0/0 by 10.244.0.1, over it true"}
	for i := range rails {
		n := name(i)
		want = append(want, n+": macvlan bridge of mtu 9000, up true", fmt.Sprintf("%s: address in %s", n, subnet(i)))
		if c.routes {
			want = append(want, fmt.Sprintf("%s: from its address to 0.0.0.0/0 by %s", n, gateway(i)),
				fmt.Sprintf("%s: from its address to %s by invalid IP", n, subnet(i)))
		}
	}
	return want
}

// checkFeatures wants a way to give a pod all that its class has, and to take it
// away again.
func checkFeatures(t *testing.T, w way, c class, p *pod) {
	t.Helper()
	before := linkNames(t, p)
	if err := w.add(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	got, err := features(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantFeatures(c), got); diff != "" {
		t.Errorf("%T, %s (-want +got):\n%s", w, c.name, diff)
	}
	if err := w.del(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, linkNames(t, p)); diff != "" {
		t.Errorf("%T, %s, after DEL (-want +got):\n%s", w, c.name, diff)
	}
}

// linkNames are the pod's links, and how many rules it has.
func linkNames(t *testing.T, p *pod) []string {
	t.Helper()
	k, err := read(p)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{fmt.Sprintf("%d rules", len(k.rules))}
	for _, l := range k.links {
		names = append(names, l.Name)
	}
	return names
}

// TestSameFeatures has ours and the bare calls do the same. That plugins do it
// too, TestBudgets looks at, which has them.
func TestSameFeatures(t *testing.T) {
	kerneltest.NetNS(t, func() {
		node, err := netns.Current()
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, node, 1)
		for _, c := range classes() {
			for _, batched := range []bool{false, true} {
				checkFeatures(t, bare{w, c, batched}, c, w.pods[0])
			}
			checkFeatures(t, newOurs(t, t.TempDir(), c), c, w.pods[0])
		}
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
}

// sameFeatures has the ways that need plugins do what the others do.
func (b *bench) sameFeatures(t *testing.T) {
	t.Helper()
	for _, c := range podClasses() {
		w, stop := newWhole(t.Context(), t, b.bin, c)
		checkFeatures(t, w, c, b.world.empty[0])
		stop()
		if c.gateways {
			continue
		}
		p, err := newPlugins(b.bin, t.TempDir(), c)
		if err != nil {
			t.Fatal(err)
		}
		checkFeatures(t, p, c, b.world.pods[0])
		whole, err := newWholePlugins(b.bin, t.TempDir(), c)
		if err != nil {
			t.Fatal(err)
		}
		checkFeatures(t, whole, c, b.world.empty[0])
		us, stopUs := newCalledWhole(t.Context(), t, b.bin, b.program, c)
		checkFeatures(t, us, c, b.world.empty[0])
		stopUs()
		them, stopThem := newMultus(t.Context(), t, b.set, b.world.empty, c)
		checkFeatures(t, them, c, b.world.empty[0])
		stopThem()
	}
}
