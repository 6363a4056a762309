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
		case b.state == missing && p == nil && !b.remembersHolders() && !r.shownIn(b.pool, b.part):
			delete(r.books, b.name)
		case b.state == missing:
			r.rebuildOne(b)
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
func (r *round) rebuildOne(b *book) {
	remembered := b.remembered
	empty := ipam.NewLedger(b.name, r.poolOf(b), b.part)
	empty.Epoch = r.lastEpoch(b.pool)
	if remembered != nil {
		empty.Epoch = max(empty.Epoch, remembered.Epoch)
	}
	b.ledger, b.next, b.state, b.told, b.gives = empty, nil, known, nil, nil
	b.bump()
	l := b.change()
	l.Meta.Annotations = map[string]string{v1alpha1.AnnotationRebuilding: "true"}
	if remembered != nil {
		r.restoreRemembered(b, remembered)
	}
	r.restoreTold(b)
	b.say(News{Warning: true, Reason: NewsRebuilding, Text: "was deleted by force: it is made again from the leases, and gives nothing until all of them were written"})
	r.failed("ledger %s: was deleted by force: it is made again from the leases", b.name)
}

// poolOf is the pool of a ledger that was lost, of which there is nothing but
// its name where it is gone: nodes have its addresses all the same.
func (r *round) poolOf(b *book) ipam.Pool {
	if p := r.pools[b.pool]; p != nil {
		return p.Pool
	}
	gone := ipam.Pool{Name: b.pool}
	if b.remembered != nil {
		gone.UID = b.remembered.PoolUID
	}
	return gone
}

// remembersHolders says whether a ledger that was lost had more than quarantine.
func (b *book) remembersHolders() bool {
	if b.remembered != nil {
		for run := range b.remembered.Runs() {
			if run.Quarantine == nil {
				return true
			}
		}
	}
	return false
}

// restoreRemembered writes down what is remembered of a ledger. What a node was
// told of since is newer: another leader may have written the ledger after us.
func (r *round) restoreRemembered(b *book, remembered *ipam.Ledger) {
	l := b.change()
	for _, told := range r.toldOf(b) {
		if told.epoch > remembered.Epoch {
			r.restoreGrant(l, told)
		}
	}
	newer := l.HeldList()
	for run := range remembered.Runs() {
		for _, addresses := range ipam.Without([]netipx.IPRange{run.IPRange}, newer) {
			r.restore(l, addresses, run.Holder)
		}
	}
}

// restoreTold writes down what nodes were told of a part and its ledger lacks.
func (r *round) restoreTold(b *book) {
	for _, told := range r.toldOf(b) {
		if len(ipam.Without([]netipx.IPRange{told.IPRange}, b.now().HeldList())) > 0 {
			r.restoreGrant(b.change(), told)
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

// restoreGrant writes down a grant, as far as nobody has its addresses.
func (r *round) restoreGrant(l *ipam.Ledger, of told) {
	for _, addresses := range ipam.Without([]netipx.IPRange{of.IPRange}, l.HeldList()) {
		r.restore(l, addresses, ipam.Holder{Node: of.node, Identity: of.identity, Doubtful: of.doubtful})
	}
}

func (r *round) restore(l *ipam.Ledger, addresses netipx.IPRange, holder ipam.Holder) {
	if err := l.GiveList([]netipx.IPRange{addresses}, holder, l.Epoch); err != nil {
		r.errs = append(r.errs, err)
	}
}
