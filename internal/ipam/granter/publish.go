package granter

import (
	"context"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// failuresMost is how often a ledger cannot be written before nodes are told so
// and stop waiting for its pool.
const failuresMost = 3

// publish writes the statuses that are not as they should be. R1: what a status
// grants or withdraws is by ledgers that were written in this round, or read
// again after the lease.
func (r *round) publish(ctx context.Context) {
	var due []*lease
	admits := false
	unproven := map[*book]bool{}
	for _, l := range r.leases {
		switch {
		case r.still(l):
		case r.differs(l, unproven):
			due = append(due, l)
			admits = admits || r.admissible(l)
		default:
			r.settleDown(l)
		}
	}
	r.prove(ctx, unproven)
	if admits {
		r.proveAll(ctx)
	}
	objects := make([]*v1alpha1.AddressLease, len(due))
	answers, errs := make([]*v1alpha1.AddressLease, len(due)), make([]error, len(due))
	for i, l := range due {
		objects[i] = r.statusOf(l)
	}
	r.each(len(due), func(i int) {
		if objects[i] != nil {
			answers[i], errs[i] = r.store.UpdateLeaseStatus(ctx, objects[i])
		}
	})
	for i, l := range due {
		if objects[i] != nil && r.wrote(l, answers[i], errs[i]) {
			r.tell(l)
		}
	}
}

// wrote keeps what became of the write of one status.
func (r *round) wrote(l *lease, answer *v1alpha1.AddressLease, err error) bool {
	if err == nil {
		now := parseLease(answer, l)
		now.standing, now.why, now.reason, now.withdrawn, now.entries = l.standing, l.why, l.reason, l.withdrawn, l.entries
		*l = *now
		r.report.LeaseWrites++
		return true
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		r.report.Conflicts++
		return false
	}
	l.lost = true // R8: the view says what became of it
	r.failed("lease %s: write status: %w", l.name, err)
	return false
}

// prove reads ledgers live: those that are as remembered can be published from.
func (r *round) prove(ctx context.Context, unproven map[*book]bool) {
	var due []*book
	for _, b := range r.sorted() {
		if unproven[b] {
			due = append(due, b)
		}
	}
	answers, errs := make([]*v1alpha1.PoolLedger, len(due)), make([]error, len(due))
	r.each(len(due), func(i int) { answers[i], errs[i] = r.store.Ledger(ctx, due[i].name) })
	for i, b := range due {
		switch err := errs[i]; {
		case err == nil && answers[i].UID == b.ledger.Meta.UID && answers[i].ResourceVersion == b.ledger.Meta.ResourceVersion:
			b.proven = true
			continue
		case err == nil, apierrors.IsNotFound(err):
			r.report.Conflicts++
			r.report.Again = true
		default:
			r.failed("ledger %s: read: %w", b.name, err)
		}
		b.forget()
	}
}

// proveAll compares all ledgers with what is remembered, for what says that a
// node has nothing anywhere.
func (r *round) proveAll(ctx context.Context) {
	changed, err := r.relist(ctx)
	r.complete = err == nil && len(changed) == 0
}

// differs says whether a status is to be written, and which ledgers are to be
// proven for that.
func (r *round) differs(l *lease, unproven map[*book]bool) bool {
	differs := r.untold(l) || l.reason != l.object.Status.Reason
	switch {
	case l.standing == waiting:
		return differs
	case l.standing >= freed:
		return differs || len(l.object.Status.Pools) > 0 || r.admissible(l)
	}
	shares := r.now().byNode[l.name]
	for i := range l.entries {
		e := &l.entries[i]
		want := r.grants(l, e.pool, of(shares, e.pool))
		for _, g := range difference(l.shown[e.pool], want) {
			differs = true
			r.touches(e.pool, g, unproven)
		}
		e.said = e.asked || len(want) > 0
		differs = differs || !l.tells(e)
	}
	return differs || l.object.Status.NodeUID != l.object.Spec.NodeUID || l.observed(r) != l.object.Status.ObservedGeneration
}

// touches finds the ledgers that a grant is of, and makes that known which
// should be there and is not.
func (r *round) touches(name string, g grant, unproven map[*book]bool) {
	p := r.pools[name]
	if p == nil {
		for _, b := range r.now().books {
			if b.pool == name && b.state == known && !b.proven && b.part.Overlaps(g.IPRange) {
				unproven[b] = true
			}
		}
		return
	}
	rest := []netipx.IPRange{g.IPRange}
	for _, b := range p.booksOf() {
		if b.part.IsValid() && b.part.Overlaps(g.IPRange) {
			rest = ipam.Without(rest, []netipx.IPRange{b.part})
			if b.state == known && !b.proven {
				unproven[b] = true
			}
		}
	}
	for len(rest) > 0 && p.Subnet.Contains(rest[0].From()) {
		b := r.newBook(p, ipam.PartOf(p.Subnet, rest[0].From()))
		b.state, b.lost, r.report.Again = missing, true, true
		rest = ipam.Without(rest, []netipx.IPRange{b.part})
	}
}
