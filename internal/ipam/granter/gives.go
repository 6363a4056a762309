package granter

import (
	"context"
	"slices"
	"strings"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// giving is what a ledger gives as this round makes it.
func (b *book) giving() []netipx.IPRange {
	if b.next != nil {
		return b.nextGives
	}
	return b.gives
}

// setGiving changes what a ledger gives.
func (b *book) setGiving(now []netipx.IPRange) {
	b.grown = b.grown || len(ipam.Without(now, b.giving())) > 0
	l := b.change()
	if l.Meta.Annotations == nil {
		l.Meta.Annotations = map[string]string{}
	}
	l.Meta.Annotations[v1alpha1.AnnotationGives] = strings.Join(ipam.FormatList(now), ",")
	b.nextGives = now
}

// claims is all that is not for other ledgers: what a ledger gives and holds,
// as last written and as this round makes it. The write that frees an address
// of one ledger may fail while the one that grants it by another does not.
func (b *book) claims() []netipx.IPRange {
	if b.claimed.version == b.version {
		return b.claimed.ranges
	}
	all := slices.Concat(b.gives, b.ledger.HeldList())
	if b.next != nil {
		all = slices.Concat(all, b.nextGives, b.next.HeldList())
	}
	b.claimed = claimed{b.version, ipam.Merged(all)}
	return b.claimed.ranges
}

// claimed is what a ledger claims, as of one version of its book.
type claimed struct {
	version int64
	ranges  []netipx.IPRange
}

// readGiving has each ledger give what its pool has, and no other ledger claims.
// What one is to give no more, and another one from now on, takes two rounds.
func (r *round) readGiving() {
	for _, b := range r.now().books {
		p := r.pools[b.pool]
		switch {
		case b.state != known, p == nil && b.ledger.Len() == 0: // which is to be deleted
		case p == nil:
			r.giveNothing(b)
		case b.givesAll != p.Addresses || b.next != nil:
			r.readGivingOf(p, b)
		}
	}
}

// giveNothing is readGivingOf for a ledger whose pool is gone.
func (r *round) giveNothing(b *book) {
	if len(b.giving()) > 0 {
		b.setGiving(nil)
	}
}

// readGivingOf has a ledger give what its pool has and no other ledger claims. A
// pool that is closed gives nothing more than before.
func (r *round) readGivingOf(p *pool, b *book) {
	all := within(p.Addresses.Ranges(), b.part)
	now := ipam.Common(b.giving(), all)
	if fresh := ipam.Without(all, now); len(fresh) > 0 && p.Closed == "" && !p.Deleting {
		mine := ipam.Without(fresh, r.heldElsewhere(p))
		r.deferred = r.deferred || !slices.Equal(mine, fresh)
		now = ipam.Merged(slices.Concat(now, mine))
	}
	if !slices.Equal(now, b.giving()) {
		b.setGiving(now)
	}
	b.givesAll = nil
	if slices.Equal(now, all) {
		b.givesAll = p.Addresses
	}
}

// proveGiving reads all ledgers after some were written that give more than
// before. Another leader that did the same with an overlapping ledger sees it,
// or is seen here: what both claim is published by neither.
func (r *round) proveGiving(ctx context.Context) {
	var grown []*book
	for _, b := range r.sorted() {
		if b.grown && b.state == known && b.next == nil {
			grown = append(grown, b)
		}
	}
	if len(grown) == 0 {
		return
	}
	changed, err := r.relist(ctx)
	for _, b := range grown {
		if err != nil || slices.ContainsFunc(changed, func(o *v1alpha1.PoolLedger) bool { return b.clashes(o) }) {
			b.forget()
			r.report.Again = true
		}
	}
}

// clashes says whether another ledger gives or holds what this one gives.
func (b *book) clashes(o *v1alpha1.PoolLedger) bool {
	if o.Name == b.name {
		return true
	}
	if part, err := ipam.ParseRange(o.Spec.Part); err == nil && !part.Overlaps(b.part) {
		return false
	}
	other, err := ipam.LedgerOf(o)
	if err != nil {
		return true
	}
	return ipam.Overlap(b.gives, ipam.Merged(slices.Concat(other.Gives(), other.HeldList())))
}

// relist reads all ledgers, and has those read again before they are used that
// are not as remembered, which it returns.
func (r *round) relist(ctx context.Context) ([]*v1alpha1.PoolLedger, error) {
	r.unsure = true
	ledgers, err := r.store.Ledgers(ctx)
	if err != nil {
		r.failed("ledgers: list: %w", err)
		return nil, err
	}
	r.unsure = false
	var changed []*v1alpha1.PoolLedger
	for i := range ledgers {
		o := &ledgers[i]
		b := r.books[o.Name]
		if b == nil {
			b = &book{name: o.Name, pool: o.Spec.Pool, clock: &r.clock}
			r.books[o.Name] = b
		}
		if b.state != known || b.ledger == nil || b.ledger.Meta.ResourceVersion != o.ResourceVersion || b.ledger.Meta.UID != o.UID {
			b.forget()
			r.report.Again = true
			changed = append(changed, o)
		}
	}
	return changed, nil
}

// disputed is what of some addresses of a ledger another one claims, too. It
// was granted by two leaders at once, and nobody is told of it while that is so.
func (r *round) disputed(b *book, ranges []netipx.IPRange) []netipx.IPRange {
	if len(ranges) == 0 {
		return nil
	}
	others := r.now().books
	if p := r.pools[b.pool]; p != nil {
		others = p.books
	}
	var both []netipx.IPRange
	for _, other := range others {
		switch {
		case other.pool == b.pool || other.part.IsValid() && b.part.IsValid() && !other.part.Overlaps(b.part):
		case other.ledger == nil || slices.Contains(r.unknown, other):
			return ranges
		default:
			both = append(both, ipam.Common(ranges, other.claims())...)
		}
	}
	return ipam.Merged(both)
}
