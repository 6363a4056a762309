package granter

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

func setOf(t *testing.T, items ...string) *netipx.IPSet {
	t.Helper()
	set, err := ipam.ParseRanges(items)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Addresses that pods have when a ledger is made are in quarantine until the
// pods are gone, and come last, as doubtful, or by a node's word.
func TestImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.6")
	w.node("n1", 2, "a")
	taken, gone := setOf(t, "10.1.0.1-10.1.0.2", "10.1.0.4", "10.1.0.200"), map[string]bool{}
	w.view = func(v *View) {
		v.Taken = func(string) *netipx.IPSet { return taken }
		v.TakenBy = func(_ string, addr netip.Addr) string {
			if addr == netip.MustParseAddr("10.1.0.4") {
				return ""
			}
			return "x/pod"
		}
		v.GonePod = func(pod string) bool { return gone[pod] }
	}
	expect := func(wanted ...string) {
		t.Helper()
		w.calm()
		if diff := cmp.Diff(wanted, w.runs("a")); diff != "" {
			t.Error(diff)
		}
	}
	const imported = " quarantine: in use before Railhead"
	expect("10.1.0.1-10.1.0.2"+imported, "10.1.0.3 n1", "10.1.0.4"+imported, "10.1.0.5 n1", "10.1.0.200"+imported)
	if pod := w.ledgers["a"].Spec.Runs[0].Quarantine.Pod; pod != "x/pod" {
		t.Errorf("pod %q", pod)
	}
	// What a pod has is given to a node that names it: the pod's own.
	w.spec("n1", func(l *v1alpha1.AddressLease) {
		l.Spec.Exact = []v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.2"}}}
	})
	expect("10.1.0.1"+imported, "10.1.0.2 n1?", "10.1.0.3 n1", "10.1.0.4"+imported, "10.1.0.5 n1", "10.1.0.200"+imported)
	gone["x/pod"], taken = true, setOf(t, "10.1.0.4")
	expect("10.1.0.2 n1?", "10.1.0.3 n1", "10.1.0.4"+imported, "10.1.0.5 n1")
	// When all else is used up: still not what a pod has.
	w.node("n1", 9, "a")
	expect("10.1.0.1 n1", "10.1.0.2 n1?", "10.1.0.3 n1", "10.1.0.4"+imported, "10.1.0.5 n1", "10.1.0.6 n1")
	taken = nil
	expect("10.1.0.1 n1", "10.1.0.2 n1?", "10.1.0.3 n1", "10.1.0.4 n1?", "10.1.0.5 n1", "10.1.0.6 n1")
}

// What pods have of a pool that has a ledger already is not given either.
func TestTakenAfterTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
	w.node("n1", 1, "a")
	w.calm()
	w.view = func(v *View) {
		v.Taken = func(string) *netipx.IPSet { return setOf(t, "10.1.0.3") }
	}
	w.node("n1", 4, "a")
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.1-10.1.0.2 n1", "10.1.0.4 n1"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

func TestPoolsThatGiveNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*ipam.Pool)
		short   string
		revoked []string
	}{
		"closed":      {func(p *ipam.Pool) { p.Closed = "it is disabled" }, "pool a gives nothing: it is disabled", []string{"10.1.0.1-10.1.0.2"}},
		"deleting":    {func(p *ipam.Pool) { p.Deleting = true }, "pool a is being deleted", []string{"10.1.0.1-10.1.0.2"}},
		"not for it":  {func(p *ipam.Pool) { p.Serves = func(node string) bool { return node == "n2" } }, "pool a does not serve node n1", []string{"10.1.0.1-10.1.0.2"}},
		"other range": {func(p *ipam.Pool) { p.Addresses = ipam.SetOf([]netipx.IPRange{mustRange("10.1.0.2-10.1.0.3")}) }, "all 2 addresses are held: 2 by n1", []string{"10.1.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
			w.node("n1", 2, "a")
			w.calm()
			p := w.pools["a"]
			c.change(&p)
			w.pools["a"] = p
			w.node("n1", 4, "a")
			w.calm()
			leased := w.leased("n1", "a")
			if leased.Short != c.short {
				t.Errorf("short %q, want %q", leased.Short, c.short)
			}
			if diff := cmp.Diff(c.revoked, leased.Revoke); diff != "" {
				t.Error(diff)
			}
			// Nothing is taken by that: the node gives it back.
			if got := w.holds("n1", "a"); !got.Contains(netip.MustParseAddr("10.1.0.1")) {
				t.Errorf("n1 holds %v", ipam.FormatRanges(got))
			}
		})
	}
}

func mustRange(text string) netipx.IPRange {
	r, err := ipam.ParseRange(text)
	if err != nil {
		panic(err)
	}
	return r
}

func TestServes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.20")
	p := w.pools["a"]
	p.Serves = func(node string) bool { return node == "n2" }
	w.pools["a"] = p
	w.node("n1", 2, "a")
	w.node("n2", 2, "a")
	w.spec("n1", func(l *v1alpha1.AddressLease) {
		l.Spec.Exact = []v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.9"}}}
		l.Spec.Pins = []v1alpha1.Pin{{Identity: "StatefulSet/x/db/0", Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
	})
	w.calm()
	if n := ipam.Count(w.holds("n1", "a")); n != 0 || w.leased("n1", "a").Short != "pool a does not serve node n1" {
		t.Errorf("n1 holds %d, short %q", n, w.leased("n1", "a").Short)
	}
	if n := ipam.Count(w.holds("n2", "a")); n < 2 {
		t.Errorf("n2 holds %d", n)
	}
}

func TestLedgersOfPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
	w.node("n1", 2, "a")
	w.calm()
	// A pool of the same name takes over the ledger, and what is held.
	p := w.pools["a"]
	p.UID = "second"
	w.pools["a"] = p
	before := w.runs("a")
	w.calm()
	if diff := cmp.Diff(before, w.runs("a")); diff != "" || w.ledgers["a"].Spec.PoolUID != "second" {
		t.Errorf("pool UID %s; %s", w.ledgers["a"].Spec.PoolUID, diff)
	}
	// The pool goes: its ledger stays as long as a node has addresses or speaks of them.
	delete(w.pools, "a")
	w.calm()
	if w.ledgers["a"] == nil || len(w.leased("n1", "a").Revoke) == 0 {
		t.Fatalf("ledgers %v, n1 %+v", w.ledgers, w.leased("n1", "a"))
	}
	w.node("n1", 0)
	w.giveBack("n1", "a", 4, "")
	w.calm()
	if w.ledgers["a"] == nil {
		t.Fatal("the ledger is gone while n1 returns its addresses")
	}
	w.spec("n1", func(l *v1alpha1.AddressLease) { l.Spec.Returns = nil })
	w.calm()
	if len(w.ledgers) != 0 || len(w.g.books) != 0 {
		t.Errorf("ledgers %v", w.ledgers)
	}
}

// An address in quarantine goes with the pool that has it: from one that is
// gone, and from one that has it no more.
func TestQuarantineChangesItsPool(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"gone": func(w *world) { delete(w.pools, "a") },
		"moved": func(w *world) {
			p := w.pools["a"]
			p.Addresses = ipam.SetOf([]netipx.IPRange{mustRange("10.1.0.9")})
			w.pools["a"] = p
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
			w.node("n1", 2, "a")
			w.calm()
			delete(w.nodes, "n1")
			w.calm()
			if diff := cmp.Diff([]string{"10.1.0.1-10.1.0.2 quarantine: node is gone"}, w.runs("a")); diff != "" {
				t.Fatal(diff)
			}
			change(w)
			w.calm()
			w.pool("b", "10.1.0.0/24", "10.1.0.1-10.1.0.3")
			for range 3 {
				w.round()
				w.check()
			}
			w.node("n2", 3, "b")
			w.calm()
			if diff := cmp.Diff([]string{"10.1.0.1-10.1.0.2 n2?", "10.1.0.3 n2"}, w.runs("b")); diff != "" {
				t.Error(diff)
			}
			if got := w.runs("a"); len(got) != 0 {
				t.Errorf("left: %v", got)
			}
		})
	}
}

// No pool has the address: its ledger keeps it from whatever comes.
func TestQuarantineOfNoPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1")
	w.node("n1", 1, "a")
	w.calm()
	delete(w.nodes, "n1")
	delete(w.pools, "a")
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.1 quarantine: node is gone"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

// A pool is made anew with another subnet while nodes hold addresses of the old
// one: its ledgers have other names, and both are kept apart.
func TestPoolOfTheSameNameWithAnotherSubnet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
	w.node("n1", 2, "a")
	w.calm()
	w.pool("a", "10.2.0.0/24", "10.2.0.1-10.2.0.2")
	w.node("n2", 1, "a")
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.1-10.1.0.2 n1", "10.2.0.1 n2"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
	if w.ledgers["a"] == nil || w.ledgers["a.of-10-2-0-0"] == nil {
		t.Errorf("ledgers %v", sortedKeys(w.ledgers))
	}
	if diff := cmp.Diff([]string{"10.1.0.1-10.1.0.2"}, w.leased("n1", "a").Revoke); diff != "" {
		t.Error(diff)
	}
}
