package granter

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// commit writes each ledger that changes, once (R1: that is the grant). Those
// that fail change nothing: they are read again before they are used.
func (r *round) commit(ctx context.Context) {
	var due []*book
	for _, b := range r.sorted() {
		if b.next != nil && b.ledger.Meta.ResourceVersion != "" && b.next.Alike(b.ledger) {
			b.next = nil // what was edited is as it was
			b.bump()
		}
		if b.next != nil {
			b.sayQuarantined()
			due = append(due, b)
		}
	}
	answers, errs := make([]*v1alpha1.PoolLedger, len(due)), make([]error, len(due))
	r.each(len(due), func(i int) {
		object := due[i].next.Object()
		if object.ResourceVersion == "" {
			answers[i], errs[i] = r.store.CreateLedger(ctx, object)
		} else {
			answers[i], errs[i] = r.store.UpdateLedger(ctx, object)
		}
	})
	for i, b := range due {
		r.committed(b, answers[i], errs[i])
	}
	r.report.Again = r.report.Again || r.deferred && r.report.LedgerWrites > 0
	r.drop(ctx)
}

// committed keeps what became of the write of one ledger.
func (r *round) committed(b *book, answer *v1alpha1.PoolLedger, err error) {
	if err == nil {
		next := b.next
		next.Meta = *answer.ObjectMeta.DeepCopy()
		r.report.Granted += int(b.tally.granted)
		r.report.Returned += int(b.tally.returned)
		r.report.Quarantined += int(b.tally.quarantined)
		r.report.LedgerWrites++
		r.tellNews(b.news, &next.Meta)
		b.set(next)
		b.proven, b.failures, b.problem = true, 0, nil
		return
	}
	if len(b.news) > 0 { // after a conflict, too: what won may be an earlier try of ours
		b.hoped = &hope{b.next, b.news}
	}
	b.forget() // R8, and after a conflict it is certain to be another one
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		r.report.Conflicts++
		r.report.Again = true
	default:
		b.failures, b.problem = b.failures+1, err
		r.failed("ledger %s: write: %w", b.name, err)
	}
}

// drop deletes ledgers of pools that are gone, once they are spent and no lease
// speaks of their pool: from then on nobody can return or publish what was in them.
func (r *round) drop(ctx context.Context) {
	for _, b := range r.sorted() {
		if r.pools[b.pool] != nil || b.state != known || b.next != nil || !r.spent(b) || r.spokenOf(b.pool) {
			continue
		}
		switch err := r.store.DeleteLedger(ctx, b.ledger.Object()); {
		case err == nil, apierrors.IsNotFound(err):
			delete(r.books, b.name)
			r.report.LedgerWrites++
		default:
			b.forget()
			r.failed("ledger %s: delete: %w", b.name, err)
		}
	}
}

// spent says whether the ledger of a pool that is gone is of no more use: it is
// empty, or an administrator deleted it, and what is left in it was in quarantine
// then, is no pod's, and no other pool's to take over.
func (r *round) spent(b *book) bool {
	if b.ledger.Len() > 0 && b.ledger.Meta.DeletionTimestamp == nil {
		return false
	}
	for run := range b.ledger.Runs() {
		if run.Quarantine == nil || run.Quarantine.Since.After(b.ledger.Meta.DeletionTimestamp.Time) {
			return false
		}
	}
	if len(ipam.Common(b.ledger.HeldList(), r.takenIn(b))) > 0 {
		return false
	}
	for _, p := range r.pools {
		if ipam.Overlap(b.ledger.HeldList(), p.Addresses.Ranges()) {
			return false
		}
	}
	return true
}

// spokenOf says whether a lease grants or returns addresses of a pool.
func (r *round) spokenOf(pool string) bool {
	for _, l := range r.leases {
		if len(l.shown[pool]) > 0 || len(l.returning[pool]) > 0 {
			return true
		}
	}
	return false
}
