package granter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/railhead/v1alpha1"
)

func TestPins(t *testing.T) {
	t.Parallel()
	const db = "StatefulSet/x/db/0"
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
	pin := func(node string, migration bool) {
		w.node(node, 0)
		w.spec(node, func(l *v1alpha1.AddressLease) {
			l.Spec.Pins = []v1alpha1.Pin{{Identity: db, Migration: migration, Wants: []v1alpha1.Want{{Pool: "a", Addresses: 1}}}}
		})
	}
	expect := func(wanted ...string) {
		t.Helper()
		w.settle()
		if diff := cmp.Diff(wanted, w.runs("a")); diff != "" {
			t.Error(diff)
		}
	}
	pin("n1", false)
	expect("10.1.0.1 n1" + db)
	pin("n2", false)
	expect("10.1.0.1 n1" + db)
	if got := w.leased("n2", "a").Short; got != "10.1.0.1 of "+db+" is on node n1 until that returns it" {
		t.Errorf("short %q", got)
	}
	pin("n2", true)
	expect("10.1.0.1 n1" + db + ">n2")
	w.giveBack("n1", "a", 1, "")
	w.spec("n1", func(l *v1alpha1.AddressLease) { l.Spec.Pins = nil })
	expect("10.1.0.1 n2" + db)
	w.giveBack("n2", "a", 1, "")
	w.spec("n2", func(l *v1alpha1.AddressLease) { l.Spec.Pins = nil })
	expect("10.1.0.1 " + db)
	w.view = func(v *View) { v.GoneIdentity = func(string) bool { return true } }
	expect()
}

func TestExactAndRevoke(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.4")
	w.node("n1", 4, "a")
	w.settle()
	w.node("n2", 0)
	w.spec("n2", func(l *v1alpha1.AddressLease) {
		l.Spec.Exact = []v1alpha1.Exact{{Pool: "a", Addresses: []string{"10.1.0.3", "10.1.0.77"}}}
	})
	w.settle()
	if diff := cmp.Diff([]string{"10.1.0.3"}, w.leased("n1", "a").Revoke); diff != "" {
		t.Error(diff)
	}
	if got := w.leased("n2", "a").Short; got != "10.1.0.77 is not of pool a; 10.1.0.3 is held by n1" {
		t.Errorf("short %q", got)
	}
}
