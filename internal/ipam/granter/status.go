package granter

import (
	"cmp"
	"slices"
	"strings"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// tells says whether the status tells all of an entry but its grants.
func (l *lease) tells(e *entry) bool {
	for i := range l.object.Status.Pools {
		p := &l.object.Status.Pools[i]
		if p.Pool == e.pool {
			return e.said && p.Reserve == e.reserve && p.Recall == e.recall && p.Short == e.short() && e.revokes(p.Revoke)
		}
	}
	return !e.said
}

// revokes says whether a list names what is to be revoked.
func (e *entry) revokes(items []string) bool {
	if len(items) == 0 && len(e.revoke) == 0 {
		return true
	}
	return slices.Equal(items, ipam.FormatList(e.revoke))
}

// short is why a node has less than it needs.
func (e *entry) short() string {
	if len(e.why) < 2 {
		return strings.Join(e.why, "")
	}
	return strings.Join(slices.Compact(e.why), "; ")
}

// observed is the generation that a status answers: an earlier one as long as a
// ledger of what the node wants is not known.
func (l *lease) observed(r *round) int64 {
	for _, b := range r.now().unknown {
		if b.failures < failuresMost && slices.ContainsFunc(l.entries, func(e entry) bool { return e.pool == b.pool }) {
			return l.object.Status.ObservedGeneration
		}
	}
	return l.object.Generation
}

// admissible says whether a replaced node's successor may be told of: its
// predecessor's addresses are all in quarantine or, if it was fenced, free, and nothing is left that could
// be taken for the successor's.
func (r *round) admissible(l *lease) bool {
	spec, status := l.object.Spec.NodeUID, l.object.Status.NodeUID
	if spec == "" || status == "" || spec == status || r.view.Nodes[l.name].UID != spec {
		return false
	}
	return len(r.now().unknown) == 0 && len(r.now().byNode[l.name]) == 0
}

// statusOf is the lease with the status it should have; nil if nothing can be said now.
func (r *round) statusOf(l *lease) *v1alpha1.AddressLease {
	switch {
	case l.standing == waiting && !r.untold(l): // nothing is told but that an old reason is over
		object := l.object.DeepCopy()
		object.Status.Reason = l.reason
		return object
	case l.standing == waiting:
		return l.touched()
	case l.standing >= freed:
		object := l.emptied()
		switch {
		case r.complete && r.admissible(l):
			object.Status.NodeUID, object.Status.ObservedGeneration = l.object.Spec.NodeUID, l.object.Generation
			r.report.Again = true
		case !r.untold(l) && len(l.object.Status.Pools) == 0 && l.object.Status.Reason == l.reason:
			return nil
		}
		return object
	}
	object := l.object.DeepCopy()
	status := v1alpha1.AddressLeaseStatus{NodeUID: l.object.Spec.NodeUID, ObservedGeneration: l.observed(r), Reason: l.reason}
	shares := r.now().byNode[l.name]
	for i := range l.entries {
		if e := &l.entries[i]; e.said {
			status.Pools = append(status.Pools, r.leased(l, e, of(shares, e.pool)))
		}
	}
	object.Status = status
	if r.untold(l) && object.Status.ObservedGeneration == l.object.Status.ObservedGeneration {
		object.Status.ObservedGeneration--
	}
	return object
}

// leased is what a status says of one pool.
func (r *round) leased(l *lease, e *entry, shares []share) v1alpha1.LeasedPool {
	p := v1alpha1.LeasedPool{Pool: e.pool, Reserve: e.reserve, Recall: e.recall, Short: e.short()}
	if len(e.revoke) > 0 {
		p.Revoke = ipam.FormatList(e.revoke)
	}
	for _, g := range r.grants(l, e.pool, shares) {
		p.Grants = addGrant(p.Grants, g)
	}
	slices.SortStableFunc(p.Grants, func(a, b v1alpha1.Grant) int { return cmp.Compare(a.Epoch, b.Epoch) })
	return p
}

// addGrant adds addresses to the grant that they were given with.
func addGrant(grants []v1alpha1.Grant, g grant) []v1alpha1.Grant {
	text := ipam.FormatRange(g.IPRange)
	for i := range grants {
		if o := &grants[i]; o.Epoch == g.epoch && o.Identity == g.identity && o.Doubtful == g.doubtful {
			o.Addresses = append(o.Addresses, text)
			return grants
		}
	}
	return append(grants, v1alpha1.Grant{Epoch: g.epoch, Addresses: []string{text}, Identity: g.identity, Doubtful: g.doubtful})
}
