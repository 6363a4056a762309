package granter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// busy is a cluster in which a round has something of everything to do: grants,
// returns, a fenced, a gone and a replaced node, pins, an empty ledger of a pool
// that is gone, one of quarantine that was deleted, quarantine that is released,
// and a second part.
func busy(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.40")
	w.pool("b", "10.2.0.0/20", "10.2.7.250-10.2.8.20")
	w.pool("old", "10.3.0.0/24", "10.3.0.1-10.3.0.4")
	for _, node := range []string{"fenced", "gone", "replaced", "returns", "wants"} {
		w.node(node, 2, "a", "b")
	}
	w.node("last", 1, "old")
	w.pool("free", "10.4.0.0/24", "10.4.0.1-10.4.0.4")
	w.pool("doomed", "10.5.0.0/24", "10.5.0.1-10.5.0.4")
	w.node("lost", 2, "free", "doomed")
	w.settle()
	delete(w.nodes, "lost")
	w.settle()
	delete(w.pools, "doomed")
	w.giveBack("last", "old", 4, "")
	w.node("last", 0)
	w.settle()
	w.spec("last", func(l *v1alpha1.AddressLease) { l.Spec.Returns = nil })
	w.annotate("free", "10.4.0.1-10.4.0.2,10.4.0.200")
	w.doom("doomed")
	delete(w.pools, "old")
	w.nodes["fenced"] = Node{"uid-fenced", true}
	delete(w.nodes, "gone")
	w.nodes["replaced"] = Node{UID: "again"}
	w.spec("replaced", func(l *v1alpha1.AddressLease) { l.Spec.NodeUID = "again" })
	w.giveBack("returns", "a", 1, "")
	w.node("wants", 9, "a", "b")
	w.spec("wants", func(l *v1alpha1.AddressLease) {
		l.Spec.Pins = []v1alpha1.Pin{{Identity: "StatefulSet/x/db/0", Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
	})
	return w
}

// Each access of busy rounds fails once, in each way that it can; after that
// rounds do all that is to be done.
func TestEachAccessFailsOnce(t *testing.T) {
	t.Parallel()
	count := 0
	w := busy(t)
	w.fault = func(string, string, bool) error { count++; return nil }
	w.calm()
	want, news := result(w), heard(w)
	ways := map[string]func(name string) error{
		"lost":     func(string) error { return errLost },
		"conflict": conflict,
		"refused": func(name string) error {
			return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("AddressLease").GroupKind(), name, nil)
		},
		"not found": func(name string) error { return apierrors.NewNotFound(resource("objects"), name) },
	}
	if count < 15 {
		t.Fatalf("%d accesses: the rounds do too little", count)
	}
	for way, fail := range ways {
		for at := range count {
			t.Run(fmt.Sprintf("%s %d", way, at), func(t *testing.T) {
				t.Parallel()
				w := busy(t)
				n := 0
				w.fault = func(op, name string, done bool) error {
					n++
					// Only a lost answer follows a write that was done; and a ledger that is
					// not found was deleted by force, which is tested by itself.
					if n-1 != at || done && way != "lost" || way == "not found" && op != "status" {
						return nil
					}
					return fail(name)
				}
				w.calm()
				if got := result(w); got != want {
					t.Errorf("after all: %s\nwithout a fault: %s", got, want)
				}
				if diff := cmp.Diff(news, heard(w)); diff != "" {
					t.Errorf("news, without a fault and with one: %s", diff)
				}
			})
		}
	}
}

// result is what everybody has in the end, at most as many as are wanted.
func result(w *world) string {
	var text strings.Builder
	for _, node := range []string{"fenced", "gone", "last", "replaced", "returns", "wants"} {
		for _, pool := range []string{"a", "b"} {
			var wants int64
			for _, want := range w.leases[node].Spec.Wants {
				if want.Pool == pool {
					wants = want.Addresses
				}
			}
			fmt.Fprintf(&text, "%s %d of %d, ", node, min(wants, ipam.Count(w.holds(node, pool))), wants)
		}
	}
	report := w.round().Pools
	return text.String() + fmt.Sprint(report["a"].Quarantined, report["b"].Quarantined, report["free"].Quarantined, report["a"].Pinned, len(w.ledgers))
}

// heard is what people were told, in order of texts: in whatever writes.
func heard(w *world) []string {
	var texts []string
	for _, n := range w.news {
		for text := range strings.SplitSeq(n.Text, "; ") {
			texts = append(texts, n.Ledger+" "+n.Reason+" "+text)
		}
	}
	slices.Sort(texts)
	return texts
}

// Two leaders at once, the second of which has its rounds before and after each
// access of the first.
func TestTwoLeaders(t *testing.T) {
	t.Parallel()
	for at := range 24 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			w := busy(t)
			other := New(w.store, Options{})
			n := 0
			inside := false
			w.fault = func(string, string, bool) error {
				if inside {
					return nil
				}
				if n++; n%24 == at {
					inside = true
					_, _ = other.Round(t.Context(), w.look())
					inside = false
					w.check()
				}
				return nil
			}
			for range 6 {
				_, _ = w.granter().Round(t.Context(), w.look())
				w.check()
			}
			w.fault = nil
			w.calm()
		})
	}
}

func TestParallelWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.g = New(w.store, Options{Parallel: 7})
	var pools []string
	for i := range 8 {
		pools = append(pools, fmt.Sprintf("rail%d", i))
		w.pool(pools[i], fmt.Sprintf("10.%d.0.0/16", i), fmt.Sprintf("10.%d.0.1-10.%d.63.254", i, i))
	}
	for i := range 50 {
		w.node(fmt.Sprintf("n%d", i), 3, pools...)
	}
	report, err := w.g.Round(t.Context(), w.look())
	if err != nil || report.LedgerWrites != 8 || report.LeaseWrites != 50 {
		t.Fatalf("%+v, %v", report, err)
	}
	if len(w.ledgers) != 8 || len(w.g.books) != 8 {
		t.Errorf("%d ledgers, %d books", len(w.ledgers), len(w.g.books))
	}
	w.calm()
	for i := range 50 {
		if n := ipam.Count(w.holds(fmt.Sprintf("n%d", i), "rail3")); n < 3 {
			t.Errorf("n%d holds %d", i, n)
		}
	}
}

// A granter finds ledgers that another one changed before it publishes.
func TestLedgerChangedBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.40")
	w.node("n1", 1, "a")
	w.settle()
	// The status is lost, so it is to be written by a ledger that is not: the
	// ledger is read, and another leader has changed it.
	w.spec("n1", func(l *v1alpha1.AddressLease) { l.Status.Pools[0].Grants[0].Epoch = 0 })
	ledger := w.ledgers["a"].DeepCopy()
	ledger.ResourceVersion = w.next()
	w.ledgers["a"] = ledger
	report, err := w.g.Round(t.Context(), w.look())
	if err != nil || !report.Again || report.Conflicts != 1 {
		t.Errorf("%+v, %v: want a conflict and another round", report, err)
	}
	w.calm()
}

func TestOneBrokenAmongMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.40")
	w.pool("b", "10.2.0.0/24", "10.2.0.1-10.2.0.40")
	w.ledgers["b"] = &v1alpha1.PoolLedger{Spec: v1alpha1.PoolLedgerSpec{Pool: "b", Part: "10.2.0.0-10.2.0.255", Runs: []v1alpha1.Run{{Addresses: "10.2.0.9"}}}}
	w.ledgers["b"].Name, w.ledgers["b"].ResourceVersion = "b", w.next()
	w.node("n1", 1, "a", "b")
	w.node("n2", 1, "a")
	w.spec("n2", func(l *v1alpha1.AddressLease) {
		l.Spec.Exact = []v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.300"}}}
		l.Spec.Returns = []v1alpha1.Return{{Pool: "a", Addresses: []string{"x"}}}
	})
	for range failuresMost + 2 {
		if _, err := w.granter().Round(t.Context(), w.look()); err == nil {
			t.Error("no error")
		}
		w.check()
	}
	for _, node := range []string{"n1", "n2"} {
		if ipam.Count(w.holds(node, "a")) == 0 {
			t.Errorf("%s holds nothing of the good pool", node)
		}
	}
	if n := ipam.Count(w.holds("n1", "b")); n != 0 || w.leased("n1", "b").Short == "" {
		t.Errorf("n1 holds %d of a pool whose ledger cannot be read; short %q", n, w.leased("n1", "b").Short)
	}
}

// What was withdrawn from a node is granted under another epoch when it is
// unfenced, be its ledger not readable in between.
func TestUnfencedWhileALedgerCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.40")
	w.pool("b", "10.2.0.0/24", "10.2.0.1-10.2.0.40")
	w.node("n1", 1, "a", "b")
	w.settle()
	before := w.leased("n1", "b").Grants[0].Epoch
	blocked := errors.New("no etcd leader")
	w.fault = func(op, name string, _ bool) error {
		if name == "b" && op != "status" {
			return blocked
		}
		return nil
	}
	w.nodes["n1"] = Node{types.UID("uid-n1"), true}
	_, _ = w.g.Round(t.Context(), w.look())
	w.nodes["n1"] = Node{types.UID("uid-n1"), false}
	for range 3 {
		_, _ = w.g.Round(t.Context(), w.look())
		w.check()
	}
	if ipam.Count(w.holds("n1", "a")) == 0 {
		t.Error("n1 holds nothing of the pool whose ledger is there")
	}
	w.fault = nil
	w.calm()
	if grants := w.leased("n1", "b").Grants; len(grants) != 1 || grants[0].Epoch <= before {
		t.Errorf("grants %v: want a later epoch than %d", grants, before)
	}
}
