package pool

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// ledger is that of the pool with the addresses 10.0.0.1 to .9.
func ledger(runs ...v1alpha1.Run) *v1alpha1.PoolLedger {
	return &v1alpha1.PoolLedger{
		ObjectMeta: metav1.ObjectMeta{Name: "rail0", UID: "uid-ledger"},
		Spec:       v1alpha1.PoolLedgerSpec{Pool: "rail0", Part: "10.0.0.0-10.0.0.255", Runs: runs},
	}
}

// TestLedgerKeepsPool wants a deleted pool to stay while a node or a pod has an
// address of it by its ledger, and say so; a quarantine of nobody holds up nothing.
func TestLedgerKeepsPool(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		run  v1alpha1.Run
		late bool   // the Catalog has not heard of it
		want string // what the condition has; empty: the pool goes
	}{
		"nothing":                {v1alpha1.Run{}, false, ""},
		"a node":                 {v1alpha1.Run{Addresses: "10.0.0.1-10.0.0.3", Node: "node1"}, false, "once the 3 addresses are given back"},
		"an identity":            {v1alpha1.Run{Addresses: "10.0.0.1", Identity: "StatefulSet/ns/web/0"}, false, "once the one address is given back"},
		"a pod from before":      {v1alpha1.Run{Addresses: "10.0.0.1", Quarantine: &v1alpha1.Quarantine{Reason: "x", Pod: "ns/x"}}, false, "the one address in use"},
		"a quarantine of nobody": {v1alpha1.Run{Addresses: "10.0.0.1", Quarantine: &v1alpha1.Quarantine{Reason: "x"}}, false, ""},
		"a node, just now":       {v1alpha1.Run{Addresses: "10.0.0.1", Node: "node1"}, true, "once PoolLedger rail0 has no address of it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, going("rail0", 0))
			r, _ := w.reconciler(t)
			l := ledger()
			if tt.run.Addresses != "" {
				l.Spec.Runs = []v1alpha1.Run{tt.run}
			}
			if err := w.client.Create(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if !tt.late {
				r.Catalog.Put(l)
			}
			result, err := r.Reconcile(t.Context(), named("rail0"))
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if err := w.client.Get(t.Context(), client.ObjectKey{Name: "rail0"}, &v2beta1.SpiderIPPool{}); !apierrors.IsNotFound(err) {
					t.Errorf("it stays: error %v", err)
				}
				return
			}
			if c := condition(t, w.pool(t, "rail0")); !strings.Contains(c.Message, tt.want) {
				t.Errorf("condition %q, want %q", c.Message, tt.want)
			}
			if tt.late != (result.RequeueAfter == recheck) {
				t.Errorf("looked at again after %s", result.RequeueAfter)
			}
		})
	}
}

// TestPublished wants a pool to say which pods have its addresses, once a ledger
// is about them, and numbers to be written at most once a second.
func TestPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pool("rail0", 0), ledger(), endpoint("a", "rail0", "10.0.0.4"))
	r, _ := w.reconciler(t)
	look := func(edit func()) (time.Duration, int) {
		t.Helper()
		edit()
		before := w.writes
		result, err := r.Reconcile(t.Context(), named("rail0"))
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter, w.writes - before
	}
	if again, writes := look(func() {}); again != 0 || writes != 2 { // finalizer, status
		t.Errorf("at first: again after %s, %d writes", again, writes)
	}
	if got := *w.pool(t, "rail0").Status.AllocatedIPs; got != `{"10.0.0.4":{"pod":"default/a","podUid":"pod-a"}}` {
		t.Errorf("it says %s", got)
	}
	again, writes := look(func() { r.Catalog.Put(endpoint("b", "rail0", "10.0.0.5")) })
	if again <= 0 || again > pace || writes != 0 {
		t.Errorf("a number within a second: again after %s, %d writes", again, writes)
	}
	again, writes = look(func() {
		p := w.pool(t, "rail0")
		if p.Spec.Disable = new(true); w.client.Update(t.Context(), p) != nil {
			t.Fatal("the pool cannot be changed")
		}
	})
	if again != 0 || writes != 1 {
		t.Errorf("another condition: again after %s, %d writes", again, writes)
	}
	again, writes = look(func() {
		r.Catalog.Remove(endpoint("a", "", ""))
		r.Catalog.Remove(endpoint("b", "", ""))
		r.counted["rail0"] = time.Now().Add(-pace)
	})
	if got := w.pool(t, "rail0").Status; again != 0 || writes != 1 || got.AllocatedIPs != nil || *got.AllocatedIPCount != 0 {
		t.Errorf("a second later: again after %s, %d writes, status %+v", again, writes, got)
	}
}
