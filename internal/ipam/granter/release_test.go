package granter

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/railhead/v1alpha1"
)

// annotate is an administrator's write of a ledger, which says something or
// deletes it.
func (w *world) annotate(name, word string) {
	l := w.ledgers[name].DeepCopy()
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, v1alpha1.AnnotationRelease, word)
	l.ResourceVersion = w.next()
	w.ledgers[name] = l
}

func (w *world) doom(name string) {
	l := w.ledgers[name].DeepCopy()
	l.DeletionTimestamp = new(metav1.NewTime(time.Unix(1_700_000_000, 0)))
	l.ResourceVersion = w.next()
	w.ledgers[name] = l
}

// quarantined is a pool of ten addresses: 1 to 4 were of a node that is gone, 5 to
// 7 are of one that is there, 8 is an identity's on none, 9 and 10 are free.
func quarantined(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.g, w.behind = New(w.store, Options{ReserveMost: -1}), true // another leader would have reserves
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.10")
	w.node("n1", 4, "a")
	w.settle()
	w.node("n2", 3, "a")
	w.settle()
	w.pinned("n3", false)
	w.node("n3", 0)
	w.spec("n3", func(l *v1alpha1.AddressLease) { l.Spec.Pins = nil })
	w.giveBack("n3", "a", 1, "")
	w.settle()
	delete(w.nodes, "n1")
	w.settle()
	if diff := cmp.Diff([]string{
		"10.1.0.1-10.1.0.4 quarantine: node is gone", "10.1.0.5-10.1.0.7 n2", "10.1.0.8 " + vm,
	}, w.runs("a")); diff != "" {
		t.Fatal(diff)
	}
	w.news = nil
	return w
}

// toldTexts compares news without what tells writes apart.
var toldTexts = cmpopts.IgnoreFields(News{}, "Ledger", "UID", "ResourceVersion")

// An administrator's word frees what is in quarantine, and nothing else, by the
// write that takes the word away; and people are told what was not done.
func TestRelease(t *testing.T) {
	t.Parallel()
	const left = " quarantine: node is gone"
	for name, c := range map[string]struct {
		word string
		want []string // of what was in quarantine
		news []News
	}{
		"all": {"all", nil, []News{{Reason: NewsReleased, Text: "released 4 addresses from quarantine: 10.1.0.1-10.1.0.4"}}},
		"one": {"10.1.0.1", []string{"10.1.0.2-10.1.0.4" + left}, []News{
			{Reason: NewsReleased, Text: "released 1 address from quarantine: 10.1.0.1"},
		}},
		"a list": {"10.1.0.4, 10.1.0.1-10.1.0.2,10.1.0.2", []string{"10.1.0.3" + left}, []News{
			{Reason: NewsReleased, Text: "released 3 addresses from quarantine: 10.1.0.1-10.1.0.2, 10.1.0.4"},
		}},
		"what is held": {"10.1.0.4-10.1.0.9,10.2.0.1,10.1.0.300,all,fd00::1", []string{"10.1.0.1-10.1.0.3" + left}, []News{
			{Reason: NewsReleased, Text: "released 1 address from quarantine: 10.1.0.4"},
			{Warning: true, Reason: NewsNotReleased, Text: `railhead.io/release: not released: ` +
				`"10.1.0.300": want "all", or addresses and ranges such as "10.0.0.7,10.0.0.20-10.0.0.29"; ` +
				`"all": want "all", or addresses and ranges such as "10.0.0.7,10.0.0.20-10.0.0.29"; ` +
				`10.1.0.5-10.1.0.7 (held by node n2); 10.1.0.8 (kept for VirtualMachine/x/vm); 10.1.0.9 (free already); ` +
				`10.2.0.1, fd00::1 (not of this ledger, which is about 10.1.0.0-10.1.0.255)`},
		}},
		"nothing": {"", []string{"10.1.0.1-10.1.0.4" + left}, []News{
			{Warning: true, Reason: NewsNotReleased, Text: `railhead.io/release: not released: "": want "all", or addresses and ranges such as "10.0.0.7,10.0.0.20-10.0.0.29"`},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := quarantined(t)
			w.annotate("a", c.word)
			w.writes = map[string]int{}
			w.calm()
			if diff := cmp.Diff(append(c.want, "10.1.0.5-10.1.0.7 n2", "10.1.0.8 "+vm), w.runs("a")); diff != "" {
				t.Error(diff)
			}
			if word, ok := w.ledgers["a"].Annotations[v1alpha1.AnnotationRelease]; ok || w.writes["ledger"] != 1 {
				t.Errorf("the word is %q after %d writes: want it gone by one", word, w.writes["ledger"])
			}
			if diff := cmp.Diff(c.news, w.news, toldTexts); diff != "" {
				t.Error(diff)
			}
			for _, n := range w.news {
				if l := w.ledgers["a"]; n.Ledger != "a" || n.UID != l.UID || n.ResourceVersion != l.ResourceVersion {
					t.Errorf("news of %+v", n)
				}
			}
			w.annotate("a", "all")
			w.annotate("a", "all")
			w.calm()
			w.annotate("a", "all")
			w.news = nil
			w.calm()
			if diff := cmp.Diff([]News{{Warning: true, Reason: NewsNotReleased, Text: "railhead.io/release: not released: nothing of this ledger is in quarantine"}}, w.news, toldTexts); diff != "" {
				t.Errorf("all when nothing is left: %s", diff)
			}
		})
	}
}

// What is released is given without doubt, at once, to who waits for it.
func TestReleasedIsGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.2")
	w.node("n1", 2, "a")
	w.settle()
	delete(w.nodes, "n1")
	w.settle()
	w.annotate("a", "10.1.0.2")
	w.node("n2", 1, "a")
	w.round()
	if diff := cmp.Diff([]string{"10.1.0.1 quarantine: node is gone", "10.1.0.2 n2"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
	w.calm()
}

// What goes into quarantine in the very round that reads the word is not meant.
func TestReleaseMeansWhatWasThere(t *testing.T) {
	t.Parallel()
	w := quarantined(t)
	w.annotate("a", "all")
	delete(w.nodes, "n2")
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.5-10.1.0.7 quarantine: node is gone", "10.1.0.8 " + vm}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

// The word is told once; the ledger is read until that succeeds.
func TestReleaseIsReadAtLast(t *testing.T) {
	t.Parallel()
	w := quarantined(t)
	w.annotate("a", "all")
	w.view = func(v *View) { v.Touched = map[string]string{"a": "a", "gone": "a"} }
	w.fault = func(op, _ string, _ bool) error {
		if op == "read" {
			return errLost
		}
		return nil
	}
	if _, err := w.g.Round(t.Context(), w.look()); err == nil {
		t.Error("no error")
	}
	w.view, w.fault = func(v *View) { v.Touched = nil }, nil
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.5-10.1.0.7 n2", "10.1.0.8 " + vm}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

// As long as a ledger is made again, the word waits.
func TestReleaseWhileRebuilding(t *testing.T) {
	t.Parallel()
	w := quarantined(t)
	delete(w.ledgers, "a")
	w.node("n2", 4, "a") // so that its ledger is written, and found to be gone
	w.fault = func(op, _ string, _ bool) error {
		if op == "status" {
			return errLost // no lease is written, so that it is not over
		}
		return nil
	}
	for range 3 {
		_, _ = w.g.Round(t.Context(), w.look())
	}
	w.annotate("a", "all")
	for range 3 {
		_, _ = w.g.Round(t.Context(), w.look())
	}
	if l := w.ledgers["a"]; l.Annotations[v1alpha1.AnnotationRelease] != "all" || l.Spec.Runs[0].Quarantine == nil {
		t.Errorf("ledger %+v: want the word and the quarantine", l)
	}
	w.fault = nil
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.5-10.1.0.7 n2", "10.1.0.8 " + vm, "10.1.0.9 n2"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

// A ledger of a pool that is gone, with nothing but quarantine in it, goes when
// an administrator deletes it.
func TestDeletedLedgerOfQuarantine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"deleted":           {func(w *world) { w.doom("a") }, nil},
		"not deleted":       {func(*world) {}, []string{"10.1.0.1-10.1.0.4 quarantine: node is gone"}},
		"its pool is there": {func(w *world) { w.doom("a"); w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4") }, []string{"10.1.0.1-10.1.0.4 quarantine: node is gone"}},
		"released":          {func(w *world) { w.annotate("a", "all") }, nil},
		"another has it":    {func(w *world) { w.doom("a"); w.pool("b", "10.1.0.0/24", "10.1.0.2-10.1.0.9") }, nil},
		"another takes it over late": {func(w *world) {
			w.doom("a")
			w.pool("b", "10.1.0.0/24", "10.1.0.2-10.1.0.9")
			failed := 0
			w.fault = func(op, _ string, _ bool) error {
				if failed++; op == "create" && failed < 20 {
					return errLost
				}
				return nil
			}
		}, nil},
		"a node holds of it":   {func(w *world) { w.doom("a"); w.hold("10.1.0.9") }, []string{"10.1.0.1-10.1.0.4 quarantine: node is gone", "10.1.0.9 n2?"}},
		"deleted before it":    {func(w *world) { w.pools["a"] = w.old; w.doom("a"); w.calm(); delete(w.pools, "a") }, nil},
		"deleted and released": {func(w *world) { w.doom("a"); w.annotate("a", "10.1.0.1") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
			w.node("n1", 4, "a")
			w.settle()
			delete(w.nodes, "n1")
			w.settle()
			w.old = w.pools["a"]
			delete(w.pools, "a")
			w.settle()
			c.change(w)
			w.calm()
			if diff := cmp.Diff(c.want, w.runs("a")); diff != "" {
				t.Error(diff)
			}
			if _, there := w.ledgers["a"]; there != (len(c.want) > 0) {
				t.Errorf("the ledger is there: %v", there)
			}
			if _, there := w.pools["b"]; there {
				if diff := cmp.Diff([]string{"10.1.0.2-10.1.0.4 quarantine: node is gone"}, w.runs("b")); diff != "" {
					t.Errorf("who has it now: %s", diff)
				}
			}
		})
	}
}

// hold has a node hold an address of the ledger of a pool that is gone.
func (w *world) hold(addr string) {
	w.node("n2", 0)
	l := w.ledgers["a"]
	l.Spec.Epoch++
	l.Spec.Runs = append(l.Spec.Runs, v1alpha1.Run{Addresses: addr, Node: "n2", Epoch: l.Spec.Epoch})
	l.ResourceVersion = w.next()
}

// A ledger that was deleted by force is made again in the round that is told.
func TestForcedDeletionIsTold(t *testing.T) {
	t.Parallel()
	w := quarantined(t)
	delete(w.ledgers, "a")
	_, _ = w.g.Round(t.Context(), w.look())
	if w.ledgers["a"] != nil {
		t.Fatal("it is made again though nobody told")
	}
	told := false
	w.view = func(v *View) {
		if !told {
			v.Touched = map[string]string{"a": "a"}
		}
		told = true
	}
	w.calm()
	if diff := cmp.Diff([]string{
		"10.1.0.1-10.1.0.4 quarantine: node is gone", "10.1.0.5-10.1.0.7 n2", "10.1.0.8 " + vm,
	}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]News{
		{Warning: true, Reason: NewsRebuilding, Text: "was deleted by force: it is made again from the leases, and gives nothing until all of them were written"},
		{Reason: NewsRebuilt, Text: "was made again after its loss, and gives addresses"},
	}, w.news, toldTexts); diff != "" {
		t.Error(diff)
	}
}

// What goes into quarantine is told once, with whose it was and why.
func TestQuarantineIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"gone":    {func(w *world) { delete(w.nodes, "n1") }, "3 addresses of node n1 in quarantine, node is gone: 10.1.0.1-10.1.0.3"},
		"claimed": {func(w *world) { w.giveBack("n1", "a", 1, "somebody else claims it") }, "1 address of node n1 in quarantine, somebody else claims it: 10.1.0.1"},
		"two": {func(w *world) {
			delete(w.nodes, "n1")
			delete(w.nodes, "n2")
		}, "3 addresses of node n1 in quarantine, node is gone: 10.1.0.1-10.1.0.3; 1 address of node n2 in quarantine, node is gone: 10.1.0.4"},
		"in use": {func(w *world) {
			w.view = func(v *View) {
				v.Taken = func(string) *netipx.IPSet { return setOf(t, "10.2.0.3") }
				v.TakenBy = func(string, netip.Addr) string { return "x/pod" }
			}
			w.pool("b", "10.2.0.0/24", "10.2.0.1-10.2.0.9")
			w.node("n2", 1, "a", "b")
		}, "1 address in quarantine, in use before Railhead: 10.2.0.3"},
		"fenced": {func(w *world) { w.nodes["n1"] = Node{"uid-n1", true} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.g, w.behind = New(w.store, Options{ReserveMost: -1}), true
			w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
			w.node("n1", 3, "a")
			w.settle()
			w.node("n2", 1, "a")
			w.settle()
			c.change(w)
			w.calm()
			var want []News
			if c.want != "" {
				want = []News{{Warning: true, Reason: NewsQuarantined, Text: c.want}}
			}
			if diff := cmp.Diff(want, w.news, toldTexts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Two leaders release, the second of which has its round within each access of
// the first: what a node got of it in between is not freed again.
func TestTwoLeadersRelease(t *testing.T) {
	t.Parallel()
	for at := range 8 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			w := quarantined(t)
			w.annotate("a", "all")
			n := 0
			w.fault = func(string, string, bool) error {
				if n++; n-1 == at {
					other := New(w.store, Options{})
					w.node("n4", 6, "a")
					for range 3 {
						_, _ = other.Round(t.Context(), w.look())
						w.check()
					}
				}
				return nil
			}
			_, _ = w.g.Round(t.Context(), w.look())
			w.fault = nil
			w.node("n4", 6, "a")
			w.calm()
			if n := w.leased("n4", "a"); n.Short != "" || len(n.Grants) == 0 {
				t.Errorf("n4 has %+v", n)
			}
		})
	}
}

// What a SpiderEndpoint names is its pod's, whatever an administrator says: the
// word leaves it in quarantine, and a ledger that was deleted keeps it.
func TestReleaseLeavesWhatPodsHave(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"all", "10.1.0.1-10.1.0.4"} {
		w := quarantined(t)
		w.view = func(v *View) {
			v.Taken = func(pool string) *netipx.IPSet {
				if pool == "a" {
					return setOf(t, "10.1.0.2")
				}
				return nil
			}
		}
		w.annotate("a", word)
		w.calm()
		if diff := cmp.Diff([]string{"10.1.0.2 quarantine: node is gone", "10.1.0.5-10.1.0.7 n2", "10.1.0.8 " + vm}, w.runs("a")); diff != "" {
			t.Errorf("%s: %s", word, diff)
		}
		if diff := cmp.Diff([]News{
			{Reason: NewsReleased, Text: "released 3 addresses from quarantine: 10.1.0.1, 10.1.0.3-10.1.0.4"},
			{Warning: true, Reason: NewsNotReleased, Text: "railhead.io/release: not released: 10.1.0.2 (of a pod, as a SpiderEndpoint says)"},
		}, w.news, toldTexts); diff != "" {
			t.Errorf("%s: %s", word, diff)
		}
	}
}

// A ledger was marked for deletion while its pool was there. What came into
// quarantine after that stays when the pool goes.
func TestDoomedLedgerKeepsLaterQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.g, w.behind = New(w.store, Options{ReserveMost: -1}), true
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
	w.node("n1", 4, "a")
	w.settle()
	w.doom("a")
	w.ledgers["a"].DeletionTimestamp = new(metav1.NewTime(w.look().Now.Add(-time.Hour)))
	w.settle()
	delete(w.nodes, "n1")
	w.settle()
	delete(w.pools, "a")
	w.calm()
	if diff := cmp.Diff([]string{"10.1.0.1-10.1.0.4 quarantine: node is gone"}, w.runs("a")); diff != "" {
		t.Error(diff)
	}
}

// The word is on the ledger that has just taken quarantine over: what it frees
// does not come back out of the ledger that it was in before.
func TestReleaseAfterHandover(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		old, heir := names[0], names[1]
		w := newWorld(t)
		w.g, w.behind = New(w.store, Options{ReserveMost: -1}), true
		w.pool(old, "10.1.0.0/24", "10.1.0.1-10.1.0.4")
		w.node("n1", 4, old)
		w.settle()
		delete(w.nodes, "n1")
		w.settle()
		delete(w.pools, old)
		w.pool(heir, "10.1.0.0/24", "10.1.0.1-10.1.0.4")
		if _, err := w.g.Round(t.Context(), w.look()); err != nil {
			t.Fatal(err)
		}
		w.annotate(heir, "all")
		w.calm()
		if runs := w.runs(heir); len(runs) > 0 {
			t.Errorf("%s took over from %s and has %v: want it released", heir, old, runs)
		}
	}
}
