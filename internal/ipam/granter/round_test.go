package granter

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

func TestGrantsAlikeAndReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.5-10.1.0.200")
	w.pool("b", "10.2.0.0/24", "10.2.0.1-10.2.0.200")
	w.node("n1", 2, "a", "b")
	w.node("n2", 3, "a", "b")
	report := w.settle()
	if diff := cmp.Diff([]string{"10.1.0.5-10.1.0.38 n1", "10.1.0.39-10.1.0.73 n2"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"10.2.0.5-10.2.0.38 n1", "10.2.0.39-10.2.0.73 n2"}, w.runs("b")); diff != "" {
		t.Error(diff)
	}
	if got := report.Pools["a"]; got.Held != 69 || got.Free != 196-69 || got.Reserve != 64 {
		t.Errorf("report of a: %+v", got)
	}
	if w.writes["create"] != 2 || w.writes["ledger"] != 0 {
		t.Errorf("writes %v: want one of each ledger", w.writes)
	}
}

// 21 addresses, two nodes: all are usable by one, then by the other.
func TestTheLastAddressIsUsable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.5-10.1.0.25")
	w.node("n1", 21, "a")
	w.node("n2", 0, "a")
	w.settle()
	if n := ipam.Count(w.holds("n1", "a")); n != 21 {
		t.Fatalf("n1 holds %d", n)
	}
	w.node("n2", 1, "a")
	w.settle()
	if got := w.leased("n2", "a").Short; got != "all 21 addresses are held: 21 by n1" {
		t.Errorf("short: %q", got)
	}
	w.node("n1", 0, "a")
	w.node("n2", 21, "a")
	w.settle()
	if got := w.leased("n1", "a").Recall; got != 21 {
		t.Errorf("recall %d", got)
	}
	w.giveBack("n1", "a", 21, "")
	w.settle()
	if n := ipam.Count(w.holds("n2", "a")); n != 21 {
		t.Errorf("n2 holds %d of 21", n)
	}
	if n := ipam.Count(w.holds("n1", "a")); n != 0 {
		t.Errorf("n1 holds %d", n)
	}
}

func TestShortageIsSharedFairly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.10")
	for i := range 4 {
		w.node(fmt.Sprintf("n%d", i), 5, "a")
	}
	w.settle()
	var got []int64
	for i := range 4 {
		got = append(got, ipam.Count(w.holds(fmt.Sprintf("n%d", i), "a")))
	}
	if diff := cmp.Diff([]int64{3, 3, 2, 2}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReturnNamesOneGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
	w.node("n1", 4, "a")
	w.settle()
	w.spec("n1", func(l *v1alpha1.AddressLease) {
		l.Spec.Returns = []v1alpha1.Return{{Pool: "a", Epoch: 77, Addresses: []string{"10.1.0.1-10.1.0.4"}}}
	})
	w.settle()
	if n := ipam.Count(w.holds("n1", "a")); n != 4 {
		t.Errorf("a return of another epoch was taken: n1 holds %d", n)
	}
	w.giveBack("n1", "a", 1, "somebody else claims it")
	w.settle()
	if diff := cmp.Diff([]string{"10.1.0.1 quarantine: somebody else claims it", "10.1.0.2-10.1.0.4 n1"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
	// R4: what n1 still returns is not given to it; another node gets it, doubtful.
	w.node("n2", 1, "a")
	w.settle()
	if diff := cmp.Diff([]string{"10.1.0.1 n2?", "10.1.0.2-10.1.0.4 n1"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

func TestFencedGoneReplaced(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world)
		want   []string
	}{
		"fenced": {func(w *world) { w.nodes["n1"] = Node{"uid-n1", true} }, nil},
		"gone":   {func(w *world) { delete(w.nodes, "n1") }, []string{"10.1.0.1-10.1.0.4 quarantine: node is gone"}},
		"word": {func(w *world) {
			w.spec("n1", func(l *v1alpha1.AddressLease) {
				l.Annotations = map[string]string{v1alpha1.AnnotationFenced: "uid-n1"}
			})
		}, nil},
		"replaced": {func(w *world) {
			w.nodes["n1"] = Node{UID: "new"}
			w.spec("n1", func(l *v1alpha1.AddressLease) { l.Spec.NodeUID, l.Spec.Wants = "new", nil })
		}, []string{"10.1.0.1-10.1.0.4 quarantine: node was replaced"}},
		"gone without a lease": {func(w *world) { delete(w.nodes, "n1"); delete(w.leases, "n1") }, []string{"10.1.0.1-10.1.0.4 quarantine: node is gone"}},
		"no lease":             {func(w *world) { delete(w.leases, "n1") }, []string{"10.1.0.1-10.1.0.4 n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
			w.node("n1", 4, "a")
			w.settle()
			c.change(w)
			w.settle()
			if diff := cmp.Diff(c.want, w.runs("a")); diff != "" {
				t.Error(diff)
			}
			if l := w.leases["n1"]; l != nil && len(l.Status.Pools) > 0 {
				t.Errorf("the status grants %v", l.Status.Pools)
			}
		})
	}
}
