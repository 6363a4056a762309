package granter

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

const vm = "VirtualMachine/x/vm"

// pinned is a node that has an address of an identity.
func (w *world) pinned(node string, migration bool) {
	w.node(node, 0)
	w.spec(node, func(l *v1alpha1.AddressLease) {
		l.Spec.Pins = []v1alpha1.Pin{{Identity: vm, Migration: migration, Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
	})
	w.settle()
}

// What becomes of pinned addresses of nodes that did not give them back.
func TestPinsOfNodesThatAreTaken(t *testing.T) {
	t.Parallel()
	fence := func(w *world, node string) { w.nodes[node] = Node{w.nodes[node].UID, true} }
	gone := func(w *world, node string) { delete(w.nodes, node) }
	for name, c := range map[string]struct {
		target bool // the identity moves from n1 to n2
		change func(w *world)
		want   string
	}{
		"fenced":           {false, func(w *world) { fence(w, "n1") }, "10.1.0.1 " + vm},
		"gone":             {false, func(w *world) { gone(w, "n1") }, "10.1.0.1 " + vm + "?"},
		"gone for good":    {false, func(w *world) { gone(w, "n1"); w.goneIdentity() }, "10.1.0.1 quarantine: its identity is gone, and its last node may use it still"},
		"source is fenced": {true, func(w *world) { fence(w, "n1") }, "10.1.0.1 n2" + vm},
		"target is fenced": {true, func(w *world) { fence(w, "n2") }, "10.1.0.1 n1" + vm},
		"both are gone":    {true, func(w *world) { gone(w, "n1"); gone(w, "n2") }, "10.1.0.1 " + vm + "?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
			w.pinned("n1", false)
			if c.target {
				w.pinned("n2", true)
			}
			c.change(w)
			w.calm()
			if diff := cmp.Diff([]string{c.want}, w.runs("a")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func (w *world) goneIdentity() {
	w.view = func(v *View) { v.GoneIdentity = func(string) bool { return true } }
}

// A node without a lease: what it holds is taken once it is certain that there
// is none.
func TestNodesWithoutALease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   []string
		err    string
	}{
		"fenced": {func(w *world) { w.nodes["n1"] = Node{"uid-n1", true}; delete(w.leases, "n1") }, nil, ""},
		"fenced before it was gone": {func(w *world) {
			w.nodes["n1"] = Node{"uid-n1", true}
			delete(w.leases, "n1")
			w.fault = func(op, _ string, _ bool) error {
				if op == "lease" {
					return errLost
				}
				return nil
			}
			_, _ = w.g.Round(w.t.Context(), w.look())
			w.fault = nil
			delete(w.nodes, "n1")
		}, nil, ""},
		"not seen": {func(w *world) {
			delete(w.nodes, "n1")
			w.view = func(v *View) { v.Leases = nil }
		}, []string{"10.1.0.1-10.1.0.4 n1"}, ""},
		"not to be read": {func(w *world) {
			delete(w.nodes, "n1")
			delete(w.leases, "n1")
			w.fault = func(op, _ string, _ bool) error {
				if op == "lease" {
					return errLost
				}
				return nil
			}
		}, []string{"10.1.0.1-10.1.0.4 n1"}, "lease n1: read: connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
			w.node("n1", 4, "a")
			w.settle()
			c.change(w)
			_, err := w.g.Round(t.Context(), w.look())
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, w.runs("a")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A cache that is behind the granter's own writes shows an old version of a
// lease: what it said last counts.
func TestViewBehindOwnWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.40")
	w.node("n1", 2, "a")
	old := w.look()
	w.settle()
	version := w.version
	report, err := w.g.Round(t.Context(), old)
	if err != nil || report.Conflicts != 0 || w.version != version {
		t.Errorf("%+v, %v: want nothing done", report, err)
	}
	// Another leader's write of the status is followed, too.
	w.g = nil
	w.node("n1", 9, "a")
	w.calm()
	if n := ipam.Count(w.holds("n1", "a")); n < 9 {
		t.Errorf("n1 holds %d", n)
	}
}

// While a ledger of a pool cannot be read, an identity is given no new address:
// it may have one there.
func TestPinWhileALedgerCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/20", "10.1.7.250-10.1.8.20")
	w.node("n0", 12, "a")
	w.settle()
	w.pinned("n1", false)
	before := w.runs("a")
	w.spec("n1", func(l *v1alpha1.AddressLease) { l.Spec.Pins = nil })
	w.giveBack("n1", "a", 1, "")
	w.settle()
	w.g = nil
	broken := errors.New("no etcd leader")
	hidden := ""
	for name, l := range w.ledgers {
		for i := range l.Spec.Runs {
			if l.Spec.Runs[i].Identity != "" {
				hidden = name
			}
		}
	}
	w.round()
	w.fault = func(op, name string, _ bool) error {
		if name == hidden && op != "status" {
			return broken
		}
		return nil
	}
	w.node("n0", 24, "a") // so that the ledger is written, and forgotten
	_, _ = w.g.Round(t.Context(), w.look())
	w.node("n1", 0)
	w.spec("n1", func(l *v1alpha1.AddressLease) {
		l.Spec.Pins = []v1alpha1.Pin{{Identity: vm, Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
	})
	for range 3 {
		_, _ = w.g.Round(t.Context(), w.look())
		w.check()
	}
	w.fault = nil
	w.calm()
	count := 0
	for _, run := range w.runs("a") {
		if strings.Contains(run, vm) {
			count++
		}
	}
	if count != 1 {
		t.Errorf("runs %v, before %v: want one address of the identity", w.runs("a"), before)
	}
}

// A lease that was deleted and made again is another one, with none of the old
// one's versions: what its node holds is granted again before it is told.
func TestLeaseMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
	w.node("n1", 4, "a")
	w.settle()
	before := w.leased("n1", "a").Grants[0].Epoch
	delete(w.leases, "n1")
	w.node("n1", 4, "a")
	w.calm()
	if grants := w.leased("n1", "a").Grants; len(grants) != 1 || grants[0].Epoch <= before || ipam.Count(w.holds("n1", "a")) != 4 {
		t.Errorf("grants %v: want all four of a later epoch than %d", grants, before)
	}
}
