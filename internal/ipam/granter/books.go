package granter

import (
	"cmp"
	"context"
	"slices"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// book is one ledger as last known.
type book struct {
	name   string
	pool   string
	part   netipx.IPRange
	ledger *ipam.Ledger // as last read or written, never changed in place; nil: never seen
	next   *ipam.Ledger // what this round makes of it; nil: no change
	state  state
	proven bool // current, after this round's leases were read
	// version grows whenever now() changes.
	version  int64
	clock    *int64
	failures int   // rounds in a row that could not write it
	problem  error // the last of them
	tally    tally
	news     []News // of next, to be told once it is written
	hoped    *hope  // the last write, if it failed and had news
	index    *index
	// told is leases that were written since the ledger was made again after its loss.
	told       map[string]types.UID
	lost       bool         // it was deleted by force, and is to be made again
	remembered *ipam.Ledger // what it was then

	gives, nextGives []netipx.IPRange // of ledger and next
	givesAll         *netipx.IPSet    // the pool's addresses, all of which in its part it gives
	grown            bool             // it gives more than before this round
	claimed          claimed
}

// state is what is known of a ledger.
type state int

const (
	known   state = iota
	unread        // it may be another than remembered (R8)
	missing       // it is not there, and was, or should be
)

// tally is what the change of a ledger does, in addresses.
type tally struct{ granted, returned, quarantined int64 }

// now is the ledger as this round makes it.
func (b *book) now() *ipam.Ledger {
	if b.next != nil {
		return b.next
	}
	return b.ledger
}

// change is the ledger to be changed by this round. Its epoch is the one of
// all that this round grants out of it (R3).
func (b *book) change() *ipam.Ledger {
	if b.next == nil {
		b.next, b.nextGives = b.ledger.Clone(), b.gives
		b.next.Epoch++
	}
	b.bump()
	return b.next
}

// set replaces what is known of a ledger.
func (b *book) set(l *ipam.Ledger) {
	if b.ledger == nil || b.ledger.Meta.UID != l.Meta.UID {
		b.told = nil // who was told of an earlier ledger of the name may not know of this one
	}
	b.ledger, b.next, b.state, b.part = l, nil, known, l.Part
	b.lost, b.remembered = false, nil
	b.gives, b.nextGives = l.Gives(), nil
	b.bump()
}

// bump notes that now() changed, by a number that no other change has.
func (b *book) bump() {
	*b.clock++
	b.version = *b.clock
}

// forget makes the next round read the ledger before it is used (R8).
func (b *book) forget() {
	b.next, b.state, b.tally, b.news, b.givesAll = nil, unread, tally{}, nil, nil
	b.bump()
}

// rebuilding says whether leases are still to be told that the ledger was lost.
func (b *book) rebuilding() bool {
	return b.now() != nil && b.now().Meta.Annotations[v1alpha1.AnnotationRebuilding] != ""
}

// readBooks reads all ledgers the first time, and later those that were forgotten.
func (r *round) readBooks(ctx context.Context) error {
	for _, b := range r.books {
		b.proven, b.tally, b.news, b.grown = false, tally{}, nil, false
	}
	if !r.listed {
		return r.listBooks(ctx)
	}
	r.forgetTouched()
	var again []*book
	for _, b := range r.sorted() {
		if b.state == unread {
			again = append(again, b)
		}
	}
	answers, errs := make([]*v1alpha1.PoolLedger, len(again)), make([]error, len(again))
	r.each(len(again), func(i int) { answers[i], errs[i] = r.store.Ledger(ctx, again[i].name) })
	for i, b := range again {
		before := b.gives
		r.remember(b, answers[i], errs[i])
		// Whoever had it give more may not have proven that yet.
		r.unsure = r.unsure || len(ipam.Without(b.gives, before)) > 0
	}
	if r.unsure {
		_, err := r.relist(ctx)
		return err
	}
	return nil
}

// forgetTouched has ledgers read again that somebody else wrote or deleted.
func (r *round) forgetTouched() {
	for _, name := range sortedKeys(r.view.Touched) {
		b := r.books[name]
		if b == nil { // another leader made it; if it is gone, it is forgotten again
			b = &book{name: name, pool: r.view.Touched[name], clock: &r.clock}
			r.books[name] = b
		}
		if b.state == known {
			b.forget()
		}
	}
}

// listBooks reads all ledgers.
func (r *round) listBooks(ctx context.Context) error {
	ledgers, err := r.store.Ledgers(ctx)
	if err != nil {
		return err
	}
	for i := range ledgers {
		b := &book{name: ledgers[i].Name, pool: ledgers[i].Spec.Pool, state: unread, clock: &r.clock}
		r.books[b.name] = b
		r.remember(b, &ledgers[i], nil)
	}
	r.listed = true
	r.shares = nil
	return nil
}

// remember keeps what a read of a ledger answered.
func (r *round) remember(b *book, object *v1alpha1.PoolLedger, err error) {
	switch {
	case apierrors.IsNotFound(err) && !b.lost && (b.ledger == nil || b.ledger.Meta.ResourceVersion == ""):
		delete(r.books, b.name) // its creation did not arrive
		r.overlaps.stale = true
		r.shares = nil
	case apierrors.IsNotFound(err):
		if !b.lost {
			b.lost, b.remembered = true, b.ledger
		}
		b.state = missing
		b.bump()
	case err != nil:
		b.failures, b.problem = b.failures+1, err
		r.failed("ledger %s: read: %w", b.name, err)
	default:
		ledger, err := ipam.LedgerOf(object)
		if err != nil {
			b.failures, b.problem = b.failures+1, err
			r.errs = append(r.errs, err)
			return
		}
		b.set(ledger)
		b.proven = true
		r.tellHoped(b)
	}
}

// sorted is all books by pool, part and name.
func (g *Granter) sorted() []*book {
	all := make([]*book, 0, len(g.books))
	for _, b := range g.books {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *book) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), a.part.From().Compare(b.part.From()), cmp.Compare(a.name, b.name))
	})
	return all
}
