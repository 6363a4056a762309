package granter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// While a ledger is made again, a lease that the view does not show yet is
// found: what its node has is nobody else's.
func TestRebuildFindsALeaseThatIsNotSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
	w.node("n1", 3, "a")
	w.node("n2", 1, "a")
	w.settle()
	delete(w.ledgers, "a")
	w.g = nil
	w.node("n3", 5, "a")
	w.view = func(v *View) { // a cache that is behind
		var seen []*v1alpha1.AddressLease
		for _, l := range v.Leases {
			if l.Name != "n1" {
				seen = append(seen, l)
			}
		}
		v.Leases = seen
	}
	var last error
	for range 6 {
		_, last = w.granter().Round(t.Context(), w.look())
		w.check()
	}
	if last == nil || !strings.Contains(last.Error(), "lease n1: is there and not seen yet") {
		t.Errorf("error %v", last)
	}
	if n := ipam.Count(w.holds("n3", "a")); n != 0 {
		t.Errorf("n3 holds %d while n1 is not seen", n)
	}
	w.view = nil
	w.calm()
	if n := ipam.Count(w.holds("n1", "a")); n < 3 {
		t.Errorf("n1 holds %d: want what it was told", n)
	}
	if n := ipam.Count(w.holds("n3", "a")); n == 0 {
		t.Error("n3 holds nothing after all is known")
	}
}

// Both nodes of a migration keep the address when its ledger is made again from
// nothing but the leases.
func TestRebuildOfAMigration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
	for _, node := range []string{"n1", "n2"} {
		w.node(node, 0)
		w.spec(node, func(l *v1alpha1.AddressLease) {
			l.Spec.Pins = []v1alpha1.Pin{{Identity: "VirtualMachine/x/vm", Migration: node == "n2", Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
		})
		w.settle()
	}
	delete(w.ledgers, "a")
	w.g = nil
	w.calm()
	if got := w.runs("a"); len(got) != 1 || got[0] != "10.1.0.1 n1VirtualMachine/x/vm>n2" {
		t.Errorf("runs %v", got)
	}
}

// Another leader made the ledger again and did not know of one of the two nodes:
// that node's share has an epoch that the address never had before.
func TestRebuildOfAMigrationHalfDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
	w.pinned("n1", false)
	w.pinned("n2", true)
	ledger := w.ledgers["a"]
	ledger.Spec.Epoch++
	epoch := ledger.Spec.Epoch
	ledger.Spec.Runs = []v1alpha1.Run{{Addresses: "10.1.0.1", Node: "n2", Identity: vm, Epoch: epoch}}
	ledger.Annotations, ledger.ResourceVersion = map[string]string{v1alpha1.AnnotationRebuilding: "true"}, w.next()
	w.g = nil
	w.calm()
	run := w.ledgers["a"].Spec.Runs[0]
	if run.Node != "n2" || run.Target != "n1" || run.Epoch <= epoch {
		t.Errorf("run %+v: want both nodes and a later epoch than %d", run, epoch)
	}
}

// An identity needs fewer addresses than it kept: the rest is free.
func TestSurplusOfAPin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
	pin := func(n int64) {
		w.node("n1", 0)
		w.spec("n1", func(l *v1alpha1.AddressLease) {
			l.Spec.Pins = []v1alpha1.Pin{{Identity: "StatefulSet/x/db/0", Wants: []v1alpha1.Want{{Pool: "a", Addresses: n}}}}
		})
		w.calm()
	}
	pin(3)
	w.giveBack("n1", "a", 2, "")
	pin(1)
	if got := w.runs("a"); len(got) != 1 || got[0] != "10.1.0.3 n1StatefulSet/x/db/0" {
		t.Errorf("runs %v: want what the pin wants and no more", got)
	}
}

// The pool of a ledger that was deleted by force is gone, and a node still has its
// addresses: they are no other pool's, be the leader told of the deletion or not.
func TestRebuildOfAPoolThatIsGone(t *testing.T) {
	t.Parallel()
	for name, touched := range map[string]map[string]string{"told": {"a": "a"}, "not told": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.g, w.behind = New(w.store, Options{ReserveMost: -1}), true
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
			w.node("n1", 4, "a")
			w.settle()
			delete(w.pools, "a")
			w.settle()
			delete(w.ledgers, "a")
			w.view = func(v *View) { v.Touched = touched }
			_, _ = w.g.Round(t.Context(), w.look()) // it tells of the loss
			w.view = nil
			w.pool("b", "10.1.0.0/24", "10.1.0.1-10.1.0.6")
			w.node("n2", 4, "b")
			w.calm()
			w.check()
			if n := ipam.Count(w.holds("n1", "a")); n != 4 {
				t.Errorf("n1 holds %d of what it had, want 4", n)
			}
			if n := ipam.Count(w.holds("n2", "b")); n != 2 {
				t.Errorf("n2 holds %d, want the 2 that n1 has not", n)
			}
		})
	}
}

// A leader that was paused remembers quarantine of which another one granted
// since: what the node was told of is newer, and stays the node's.
func TestRebuildByALeaderThatWasPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.g, w.behind = New(w.store, Options{ReserveMost: -1}), true
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.6")
	w.node("n1", 4, "a")
	w.settle()
	delete(w.nodes, "n1")
	w.settle()
	paused := w.g
	w.g = New(w.store, Options{ReserveMost: -1})
	w.annotate("a", "all")
	w.node("n2", 2, "a")
	w.settle()
	had := w.holds("n2", "a")
	delete(w.ledgers, "a")
	w.view = func(v *View) { v.Touched = map[string]string{"a": "a"} }
	_, _ = paused.Round(t.Context(), w.look())
	w.calm()
	w.annotate("a", "all")
	w.node("n3", 4, "a")
	w.calm()
	w.check()
	if diff := cmp.Diff(had.Ranges(), w.holds("n2", "a").Ranges(), cmp.Comparer(func(a, b netipx.IPRange) bool { return a == b })); diff != "" {
		t.Errorf("what n2 has (-before +after): %s", diff)
	}
	if shared := ipam.Common(had.Ranges(), w.holds("n3", "a").Ranges()); len(shared) > 0 {
		t.Errorf("n3 got %v, which n2 has", shared)
	}
}
