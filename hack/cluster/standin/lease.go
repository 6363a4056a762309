package standin

import (
	"context"
	"log/slog"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Leases as kubelets have them: renewed at a quarter of their duration.
const (
	leaseDuration = 40 * time.Second
	leaseRenewal  = leaseDuration / 4
)

// keepLease makes a node's lease and renews it until the context ends. A request that fails is not repeated before its
// next turn: there are many nodes, and the API server may have too much to do.
func (f *fleet) keepLease(ctx context.Context, n *node) {
	// All nodes were registered at about the same time, and would go on asking at the same time.
	if !wait(ctx, leaseRenewal*time.Duration(n.Index%len(f.nodes))/time.Duration(len(f.nodes))) {
		return
	}
	var held *coordination.Lease
	for {
		renewed, err := f.renew(ctx, n, held)
		if err != nil && ctx.Err() == nil {
			f.Log.LogAttrs(ctx, slog.LevelWarn, "lease not renewed", slog.String("node", n.Name), slog.Any("error", err))
		}
		held = renewed
		if !wait(ctx, leaseRenewal) {
			return
		}
	}
}

// renew makes or renews a node's lease and returns it as it is then; nil if it is not known.
func (f *fleet) renew(ctx context.Context, n *node, held *coordination.Lease) (*coordination.Lease, error) {
	leases := f.client.CoordinationV1().Leases(core.NamespaceNodeLease)
	if held == nil {
		made, err := leases.Create(ctx, n.lease(), meta.CreateOptions{})
		if err == nil {
			return made, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		if held, err = leases.Get(ctx, n.Name, meta.GetOptions{}); err != nil {
			return nil, err
		}
	}
	wanted := n.lease()
	wanted.ResourceVersion = held.ResourceVersion
	renewed, err := leases.Update(ctx, wanted, meta.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return renewed, nil
}

// lease is a node's lease from now on.
func (n *node) lease() *coordination.Lease {
	seconds, now := int32(leaseDuration.Seconds()), meta.NowMicro()
	return &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{
			Name: n.Name, Namespace: core.NamespaceNodeLease,
			OwnerReferences: []meta.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.uid}},
		},
		Spec: coordination.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}
