package granter

import (
	"context"
	"slices"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// rebuild makes ledgers again that were deleted by force, and goes on with those
// that are being made again.
func (r *round) rebuild(ctx context.Context) {
	for _, b := range r.sorted() {
		p := r.pools[b.pool]
		switch {
		case b.state == known && b.rebuilding():
			r.restoreTold(b)
		case b.state == missing && p == nil:
			delete(r.books, b.name)
		case b.state == missing:
			r.rebuildOne(b, p)
		}
	}
	if len(r.now().rebuilding) > 0 {
		r.findUnseen(ctx)
	}
}

// findUnseen asks live for leases that the view lacks: what they tell their
// nodes is to be known before anything is granted out of a ledger made again.
func (r *round) findUnseen(ctx context.Context) {
	names := r.orphans()
	for name := range r.view.Nodes {
		if r.byNode[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	errs := make([]error, len(names))
	r.each(len(names), func(i int) { _, errs[i] = r.store.Lease(ctx, names[i]) })
	for i, err := range errs {
		switch {
		case err == nil:
			r.failed("lease %s: is there and not seen yet: ledgers that are made again wait for it", names[i])
		case !apierrors.IsNotFound(err):
			r.failed("lease %s: read: %w", names[i], err)
		default:
			continue
		}
		r.unseen = true
	}
}

// rebuildOne makes a ledger of what is remembered of it and of what nodes were
// told, under a new epoch.
func (r *round) rebuildOne(b *book, p *pool) {
	remembered := b.remembered
	empty := ipam.NewLedger(b.name, p.Pool, b.part)
	empty.Epoch = r.lastEpoch(b.pool)
	if remembered != nil {
		empty.Epoch = max(empty.Epoch, remembered.Epoch)
	}
	b.ledger, b.next, b.state, b.told, b.gives = empty, nil, known, nil, nil
	b.bump()
	l := b.change()
	l.Meta.Annotations = map[string]string{v1alpha1.AnnotationRebuilding: "true"}
	if remembered != nil {
		for run := range remembered.Runs() {
			r.restore(l, run.IPRange, run.Holder)
		}
	}
	r.restoreTold(b)
	b.say(News{Warning: true, Reason: NewsRebuilding, Text: "was deleted while its pool exists: it is made again from the leases, and gives nothing until all of them were written"})
	r.failed("ledger %s: was deleted while its pool exists: it is made again from the leases", b.name)
}

// restoreTold writes down what nodes were told of a part and its ledger lacks.
func (r *round) restoreTold(b *book) {
	for _, told := range r.toldOf(b) {
		for _, addresses := range ipam.Without([]netipx.IPRange{told.IPRange}, b.now().HeldList()) {
			r.restore(b.change(), addresses, ipam.Holder{Node: told.node, Identity: told.identity, Doubtful: told.doubtful})
		}
		moving := func(run *ipam.Run) bool { // to the second node that was told of it
			return told.identity != "" && run.Identity == told.identity && run.Node != "" && run.Target == "" && run.Node != told.node
		}
		if r.any(b, told.IPRange, moving) {
			r.edit(b, told.IPRange, func(run *ipam.Run) bool {
				if moving(run) { // R3: who made the ledger again may have written it for the first one alone
					run.Target, run.Epoch = told.node, b.ledger.Epoch+1
				}
				return true
			})
		}
	}
}

func (r *round) restore(l *ipam.Ledger, addresses netipx.IPRange, holder ipam.Holder) {
	if err := l.GiveList([]netipx.IPRange{addresses}, holder, l.Epoch); err != nil {
		r.errs = append(r.errs, err)
	}
}
