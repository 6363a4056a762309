package address

import (
	"context"
	"errors"
	"fmt"

	"railhead/api/railhead/v1alpha1"
)

// endLeases deletes the leases of nodes that are gone and hold nothing.
func (s *sweeper) endLeases(ctx context.Context) error {
	var errs []error
	for _, lease := range s.cluster.ended() {
		s.tell("a lease ends: its node is gone and holds nothing", "lease", lease.Name)
		if err := ignoreRace(s.api.Delete(ctx, lease, exactly(lease))); err != nil {
			errs = append(errs, fmt.Errorf("AddressLease %s: %w", lease.Name, err))
		}
	}
	return errors.Join(errs...)
}

// ended are the leases of nodes that are gone, and by which nothing is held.
func (c *cluster) ended() (list []*v1alpha1.AddressLease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, lease := range c.leases {
		if c.nodes[name] == nil && c.ghosts[name] == nil && lease.DeletionTimestamp == nil && !isHolding(lease) && !c.isHeldBy(name) {
			list = append(list, lease)
		}
	}
	return list
}

func isHolding(lease *v1alpha1.AddressLease) bool {
	for i := range lease.Status.Pools {
		if len(lease.Status.Pools[i].Grants) > 0 {
			return true
		}
	}
	return false
}

// isHeldBy says whether a ledger names a node. It is called with the lock held.
func (c *cluster) isHeldBy(node string) bool {
	for _, ledger := range c.ledgers {
		for i := range ledger.Spec.Runs {
			if run := &ledger.Spec.Runs[i]; run.Node == node || run.Target == node {
				return true
			}
		}
	}
	return false
}
