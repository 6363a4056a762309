package granter

import (
	"fmt"
	"maps"
	"testing"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// Two addresses move from one pool to another, and one of two leaders has not
// seen that: whatever comes first, no address is given twice.
func TestAddressesMoveBetweenPools(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		for late := range 2 {
			for at := range 12 {
				t.Run(fmt.Sprintf("ledgers there %v, late %d, at %d", known, late, at), func(t *testing.T) {
					t.Parallel()
					moveBetweenPools(t, known, late, at)
				})
			}
		}
	}
}

func moveBetweenPools(t *testing.T, known bool, late, at int) {
	t.Helper()
	w := newWorld(t)
	w.pool("p", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
	w.pool("q", "10.1.0.0/24", "10.1.0.9")
	if known {
		w.node("n0", 1, "p", "q")
		w.settle()
		for _, pool := range []string{"p", "q"} {
			w.giveBack("n0", pool, 9, "")
		}
		w.node("n0", 0)
		w.settle()
	}
	w.node("n1", 2, "p")
	w.node("n2", 3, "q")
	old := maps.Clone(w.pools)
	w.pool("p", "10.1.0.0/24", "10.1.0.3")
	w.pool("q", "10.1.0.0/24", "10.1.0.1-10.1.0.2", "10.1.0.9")
	moved := maps.Clone(w.pools)
	leaders := []*Granter{New(w.store, Options{}), New(w.store, Options{})}
	views := []map[string]ipam.Pool{old, moved}
	round := func(i int) {
		w.pools = views[i]
		_, _ = leaders[i].Round(t.Context(), w.look())
		w.check()
	}
	first, second := late, 1-late
	if known { // both know the ledgers before
		w.pools = old
		view := w.look()
		view.Nodes = nil
		_, _ = leaders[second].Round(t.Context(), view)
	}
	n, inside := 0, false
	w.fault = func(string, string, bool) error {
		if n++; !inside && n%12 == at {
			inside = true
			round(second)
			round(second)
			inside = false
		}
		return nil
	}
	for range 4 {
		round(first)
	}
	w.fault = nil
	for range 3 {
		round(second)
		round(first)
	}
	// Both see the same at last, and n1 gives back what it may have.
	w.pools, w.g, w.behind = moved, leaders[second], true
	w.calm()
	w.giveBack("n1", "p", 9, "")
	w.node("n1", 0)
	w.calm()
	if got := ipam.FormatRanges(w.holds("n2", "q")); len(got) != 2 || got[0] != "10.1.0.1-10.1.0.2" {
		t.Errorf("n2 has %v of q: want all of it; ledgers %v %v", got, w.runs("p"), w.runs("q"))
	}
}

// A pool that is closed keeps no other one from having what it has no more.
func TestAddressesLeaveAClosedPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("p", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
	w.node("n1", 1, "p")
	w.calm()
	if got := w.ledgers["p"].Annotations[v1alpha1.AnnotationGives]; got != "10.1.0.1-10.1.0.2" {
		t.Errorf("p gives %q", got)
	}
	w.giveBack("n1", "p", 9, "")
	w.node("n1", 0)
	w.pool("p", "10.1.0.0/24", "10.1.0.2")
	p := w.pools["p"]
	p.Closed = "it is disabled"
	w.pools["p"] = p
	w.pool("q", "10.1.0.0/24", "10.1.0.1")
	w.node("n2", 1, "q")
	w.calm()
	if got := ipam.FormatRanges(w.holds("n2", "q")); len(got) != 1 || got[0] != "10.1.0.1" {
		t.Errorf("n2 has %v", got)
	}
}

// What a ledger says that it gives is edited: it gives what its pool has.
func TestGivesEdited(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nonsense", "10.1.0.200", "", "10.1.0.0-10.1.0.255"} {
		w := newWorld(t)
		w.pool("p", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
		w.node("n1", 1, "p")
		w.calm()
		w.ledgers["p"].Annotations[v1alpha1.AnnotationGives] = text
		w.ledgers["p"].ResourceVersion = w.next()
		w.g = nil
		w.node("n1", 2, "p")
		w.calm()
		if got := w.ledgers["p"].Annotations[v1alpha1.AnnotationGives]; got != "10.1.0.1-10.1.0.2" {
			t.Errorf("%q: p gives %q", text, got)
		}
	}
}
