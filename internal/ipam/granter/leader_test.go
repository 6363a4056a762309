package granter

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// A leader that is paused after any write and resumes, while another one
// fences and grants anew, gives nothing twice.
func TestPausedLeader(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"create", "ledger", "status"} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s done %v", at, done), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
				if at == "ledger" {
					w.node("n3", 1, "a")
					w.settle()
				}
				w.node("n1", 2, "a")
				paused := false
				w.fault = func(op, _ string, now bool) error {
					if op != at || now != done || paused {
						return nil
					}
					paused = true
					w.nodes["n1"] = Node{"uid-n1", true}
					w.node("n2", 4, "a")
					other := New(w.store, Options{})
					for range 4 {
						_, _ = other.Round(t.Context(), w.look())
					}
					w.nodes["n1"] = Node{"uid-n1", false}
					return nil
				}
				_, _ = w.granter().Round(t.Context(), w.look())
				w.fault = nil
				w.settle()
				if !paused {
					t.Fatal("the leader was never paused")
				}
				if both := ipam.Common(w.holds("n1", "a").Ranges(), w.holds("n2", "a").Ranges()); len(both) > 0 {
					t.Errorf("both hold %v", both)
				}
			})
		}
	}
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "ledger", "status"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
			w.node("n1", 2, "a")
			if op == "ledger" {
				w.settle()
				w.node("n1", 5, "a")
			}
			lost := 0
			w.fault = func(now, _ string, done bool) error {
				if now == op && done && lost < 2 {
					lost++
					return errLost
				}
				return nil
			}
			if _, err := w.granter().Round(t.Context(), w.look()); err == nil {
				t.Error("no error of a lost answer")
			}
			_, _ = w.g.Round(t.Context(), w.look())
			w.settle()
			if n := ipam.Count(w.holds("n1", "a")); n < 2 {
				t.Errorf("n1 holds %d", n)
			}
		})
	}
}

func TestForcedDeletionOfALedger(t *testing.T) {
	t.Parallel()
	for _, fresh := range []bool{false, true} {
		w := newWorld(t)
		w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
		w.node("n1", 4, "a")
		w.node("n2", 2, "a")
		w.settle()
		before := w.holds("n1", "a").Ranges()
		delete(w.ledgers, "a")
		if fresh {
			w.g = nil
		}
		w.node("n3", 1, "a")
		for range 6 {
			_, _ = w.granter().Round(t.Context(), w.look())
		}
		w.settle()
		if diff := cmp.Diff(ipam.FormatList(before), ipam.FormatList(w.holds("n1", "a").Ranges())); diff != "" {
			t.Error(diff)
		}
		if ipam.Count(w.holds("n3", "a")) == 0 || w.ledgers["a"].Annotations[v1alpha1.AnnotationRebuilding] != "" {
			t.Errorf("fresh %v: n3 holds nothing, or the ledger is closed still: %v", fresh, w.ledgers["a"])
		}
		if len(ipam.Common(w.holds("n3", "a").Ranges(), before)) > 0 {
			t.Error("n3 has addresses of n1")
		}
	}
}
