package address

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/granter"
)

var _ granter.Store = store{}

// TestLedgers wants ledgers with their finalizer, all of them read, none changed
// or deleted but as it was read, and none left that is on its way out.
func TestLedgers(t *testing.T) {
	t.Parallel()
	s := store{fakeAPI(t, interceptor.Funcs{}), nil}
	made, err := s.CreateLedger(t.Context(), testLedger())
	if err != nil || len(made.Finalizers) != 1 || made.Finalizers[0] != v1alpha1.Finalizer {
		t.Fatalf("made %+v, error %v", made, err)
	}
	if _, err := s.CreateLedger(t.Context(), testLedger()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second time: error %v", err)
	}
	changed := made.DeepCopy()
	changed.Spec.Epoch++
	written, err := s.UpdateLedger(t.Context(), changed)
	if err != nil || written.ResourceVersion == made.ResourceVersion {
		t.Fatalf("written %+v, error %v", written, err)
	}
	if _, err := s.UpdateLedger(t.Context(), changed); !apierrors.IsConflict(err) {
		t.Errorf("an old version is written: error %v", err)
	}
	if err := s.DeleteLedger(t.Context(), made); !apierrors.IsConflict(err) {
		t.Errorf("an old version is deleted: error %v", err)
	}
	if list, err := s.Ledgers(t.Context()); err != nil || len(list) != 1 || list[0].Spec.Epoch != written.Spec.Epoch {
		t.Errorf("there are %+v, error %v", list, err)
	}
	if err := s.DeleteLedger(t.Context(), written); err != nil {
		t.Error(err)
	}
	if _, err := s.Ledger(t.Context(), "rail0"); !apierrors.IsNotFound(err) {
		t.Errorf("after its end: error %v", err)
	}
}

// TestLedgerOnItsWayOut wants a ledger that somebody deleted, and that its
// finalizer holds, to be written on, and to go at its end.
func TestLedgerOnItsWayOut(t *testing.T) {
	t.Parallel()
	doomed := testLedger()
	doomed.Finalizers, doomed.DeletionTimestamp = []string{v1alpha1.Finalizer}, new(metav1.Now())
	s := store{fakeAPI(t, interceptor.Funcs{}, doomed), nil}
	known, err := s.Ledger(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	known.Spec.Epoch++
	if known, err = s.UpdateLedger(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteLedger(t.Context(), known); err != nil {
		t.Error(err)
	}
	if _, err := s.Ledger(t.Context(), "rail0"); !apierrors.IsNotFound(err) {
		t.Errorf("after its end: error %v", err)
	}
}

// TestLeaseStatus wants the status written as it was read, and known before the
// watch tells of it; and what the watch told meanwhile to stay.
func TestLeaseStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testLease("node1", "1"))
	s := store{w.api, w.cluster.wroteLease}
	before := w.cluster.lease("node1")
	granted := before.DeepCopy()
	granted.Status.NodeUID, granted.Spec.Session = "1", "not ours to write"
	after, err := s.UpdateLeaseStatus(t.Context(), granted)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.cluster.lease("node1"); got != after || got.Spec.Session != "" || before.Status.NodeUID != "" {
		t.Errorf("known is %+v", got)
	}
	if w.cluster.putLease(after.DeepCopy()) {
		t.Error("a round is wanted for what a round wrote")
	}
	if _, err := s.UpdateLeaseStatus(t.Context(), granted); !apierrors.IsConflict(err) {
		t.Errorf("an old version is written: error %v", err)
	}
	newer := after.DeepCopy()
	newer.ResourceVersion, newer.Spec.Session = "newer", "2"
	if !w.cluster.putLease(newer) {
		t.Error("no round is wanted for a new request")
	}
	w.cluster.wroteLease(before.ResourceVersion, after)
	if got := w.cluster.lease("node1"); got != newer {
		t.Errorf("what a round wrote hides what was asked since: %+v", got)
	}
}

// lease is the lease of a node, nil if it has none.
func (c *cluster) lease(name string) *v1alpha1.AddressLease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leases[name]
}
