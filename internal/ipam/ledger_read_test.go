package ipam

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
)

func rangeOf(t *testing.T, text string) netipx.IPRange {
	t.Helper()
	r, err := ParseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// filledLedger has runs of two nodes, of an identity that moves, and in quarantine.
func filledLedger(t *testing.T) *Ledger {
	t.Helper()
	l := newTestLedger()
	for text, holder := range map[string]Holder{
		"10.0.0.1-10.0.0.4":   {Node: "a"},
		"10.0.0.5-10.0.0.6":   {Node: "b"},
		"10.0.0.9":            {Node: "b", Target: "a", Identity: "vm"},
		"10.0.0.20-10.0.0.29": {Quarantine: &v1alpha1.Quarantine{Reason: "node is gone"}},
	} {
		if err := l.GiveList([]netipx.IPRange{rangeOf(t, text)}, holder, 3); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestLedgerReads(t *testing.T) {
	t.Parallel()
	l := filledLedger(t)
	if diff := cmp.Diff([]string{"10.0.0.1-10.0.0.6", "10.0.0.9", "10.0.0.20-10.0.0.29"}, FormatRanges(l.Held())); diff != "" {
		t.Error("held:", diff)
	}
	if diff := cmp.Diff([]string{"10.0.0.1-10.0.0.4", "10.0.0.9"}, FormatRanges(l.HeldBy("a"))); diff != "" {
		t.Error("held by a:", diff)
	}
	var within []string
	for run := range l.Within(rangeOf(t, "10.0.0.4-10.0.0.19")) {
		within = append(within, FormatRange(run.IPRange))
	}
	if diff := cmp.Diff([]string{"10.0.0.1-10.0.0.4", "10.0.0.5-10.0.0.6", "10.0.0.9"}, within); diff != "" {
		t.Error("within:", diff)
	}
	if n := len(slices.Collect(l.Runs())); n != 4 || l.Len() != n {
		t.Errorf("%d runs, Len %d", n, l.Len())
	}
	if run, ok := l.At(netip.MustParseAddr("10.0.0.25")); !ok || run.Quarantine == nil || run.Parked() {
		t.Errorf("at 10.0.0.25: %+v, %v", run, ok)
	}
}

func TestClonesChangeOnTheirOwn(t *testing.T) {
	t.Parallel()
	l := filledLedger(t)
	before := l.Object()
	c := l.Clone()
	if !c.Alike(l) {
		t.Error("a clone is not alike")
	}
	c.Take(SetOf([]netipx.IPRange{rangeOf(t, "10.0.0.2-10.0.0.5")}))
	c.Park(SetOf([]netipx.IPRange{rangeOf(t, "10.0.0.9")}))
	c.Meta.Annotations = map[string]string{"a": "b"}
	if diff := cmp.Diff(before, l.Object()); diff != "" || c.Alike(l) {
		t.Errorf("alike %v: %s", c.Alike(l), diff)
	}
	if run, _ := c.At(netip.MustParseAddr("10.0.0.9")); !run.Parked() {
		t.Errorf("%+v is not parked", run)
	}
}

// Of what ledgers differ in, epochs and versions alone do not matter.
func TestAlike(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Ledger)
		want   bool
	}{
		"epoch":     {func(l *Ledger) { l.Epoch++ }, true},
		"version":   {func(l *Ledger) { l.Meta.ResourceVersion = "9" }, true},
		"pool":      {func(l *Ledger) { l.PoolUID = "other" }, false},
		"finalizer": {func(l *Ledger) { l.Meta.Finalizers = nil }, false},
		"run":       {func(l *Ledger) { l.Take(l.HeldBy("a")) }, false},
	} {
		l := filledLedger(t)
		other := l.Clone()
		if c.change(other); other.Alike(l) != c.want {
			t.Errorf("%s: alike %v", name, !c.want)
		}
	}
}

func TestObjectsThatAreNoLedgers(t *testing.T) {
	t.Parallel()
	run := func(change func(*v1alpha1.PoolLedger)) *v1alpha1.PoolLedger {
		o := filledLedger(t).Object()
		change(o)
		return o
	}
	for want, o := range map[string]*v1alpha1.PoolLedger{
		"spec.part":                           run(func(o *v1alpha1.PoolLedger) { o.Spec.Part = "10.0.0.0/24" }),
		"spec.runs[1]":                        run(func(o *v1alpha1.PoolLedger) { o.Spec.Runs[1].Addresses = "10.0.0.6-10.0.0.5" }),
		"has no holder":                       run(func(o *v1alpha1.PoolLedger) { o.Spec.Runs[0].Node = "" }),
		"is in quarantine and held":           run(func(o *v1alpha1.PoolLedger) { o.Spec.Runs[3].Node = "a" }),
		"has target":                          run(func(o *v1alpha1.PoolLedger) { o.Spec.Runs[2].Target = "b" }),
		"is not behind":                       run(func(o *v1alpha1.PoolLedger) { o.Spec.Runs[1].Addresses = "10.0.0.4" }),
		"is not within the part":              run(func(o *v1alpha1.PoolLedger) { o.Spec.Runs[3].Addresses = "10.0.1.9" }),
		"has epoch 7, and the ledger 3: want": run(func(o *v1alpha1.PoolLedger) { o.Spec.Runs[0].Epoch = 7 }),
	} {
		if _, err := LedgerOf(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want %q", err, want)
		}
	}
}
