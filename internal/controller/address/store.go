package address

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"railhead/api/railhead/v1alpha1"
)

// store is the granter's access to the API server: it reads live, and each write
// carries the resource version that it was decided by.
type store struct {
	api client.Client
	// wrote is told of each lease that was written.
	wrote func(before string, after *v1alpha1.AddressLease)
}

// page is how many ledgers are read at once: each may have 256 KiB.
const page = 100

// Ledgers implements granter.Store.
func (s store) Ledgers(ctx context.Context) ([]v1alpha1.PoolLedger, error) {
	var ledgers []v1alpha1.PoolLedger
	next := ""
	for {
		var list v1alpha1.PoolLedgerList
		if err := s.api.List(ctx, &list, client.Limit(page), client.Continue(next)); err != nil {
			return nil, err
		}
		ledgers = append(ledgers, list.Items...)
		if next = list.Continue; next == "" {
			return ledgers, nil
		}
	}
}

// Ledger implements granter.Store.
func (s store) Ledger(ctx context.Context, name string) (*v1alpha1.PoolLedger, error) {
	ledger := &v1alpha1.PoolLedger{}
	if err := s.api.Get(ctx, client.ObjectKey{Name: name}, ledger); err != nil {
		return nil, err
	}
	return ledger, nil
}

// Lease implements granter.Store. Of a node that is there and in service it never
// says that there is no lease: nothing is taken from it.
func (s store) Lease(ctx context.Context, name string) (*v1alpha1.AddressLease, error) {
	lease := &v1alpha1.AddressLease{}
	err := s.api.Get(ctx, client.ObjectKey{Name: name}, lease)
	if err == nil {
		return lease, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	node := &corev1.Node{}
	switch nodeErr := s.api.Get(ctx, client.ObjectKey{Name: name}, node); {
	case nodeErr == nil && !isOutOfService(node):
		return nil, fmt.Errorf("node %s is there and in service, and its AddressLease is not: waiting for its agent to make one", name)
	case client.IgnoreNotFound(nodeErr) != nil:
		return nil, fmt.Errorf("node %s: %w", name, nodeErr)
	}
	return nil, err
}

// CreateLedger implements granter.Store. A ledger has the finalizer from the start.
func (s store) CreateLedger(ctx context.Context, ledger *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error) {
	made := ledger.DeepCopy()
	controllerutil.AddFinalizer(made, v1alpha1.Finalizer)
	if err := s.api.Create(ctx, made); err != nil {
		return nil, err
	}
	return made, nil
}

// UpdateLedger implements granter.Store. The answer of the API server is the commit.
func (s store) UpdateLedger(ctx context.Context, ledger *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error) {
	written := ledger.DeepCopy()
	if written.DeletionTimestamp == nil { // else the API server takes no new one
		controllerutil.AddFinalizer(written, v1alpha1.Finalizer)
	}
	if err := s.api.Update(ctx, written); err != nil {
		return nil, err
	}
	return written, nil
}

// DeleteLedger implements granter.Store. The finalizer goes first, so that no
// ledger is left that is on its way out and may be needed again.
func (s store) DeleteLedger(ctx context.Context, ledger *v1alpha1.PoolLedger) error {
	bare := ledger.DeepCopy()
	if controllerutil.RemoveFinalizer(bare, v1alpha1.Finalizer) {
		if err := s.api.Update(ctx, bare); err != nil {
			return err
		}
	}
	if ledger.DeletionTimestamp != nil {
		return nil // it went with its finalizer
	}
	return s.api.Delete(ctx, bare, exactly(bare))
}

// UpdateLeaseStatus implements granter.Store.
func (s store) UpdateLeaseStatus(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	written := lease.DeepCopy()
	if err := s.api.Status().Update(ctx, written); err != nil {
		return nil, err
	}
	s.wrote(lease.ResourceVersion, written)
	return written, nil
}

// exactly has an object deleted only as it was read.
func exactly(o metav1.Object) client.Preconditions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}
