package granter

import (
	"go4.org/netipx"

	"railhead/internal/ipam"
)

// free is the addresses that can be given, as of some versions of the books.
type free struct {
	version          int64
	books            int
	addresses, taken *netipx.IPSet
	ranges           []netipx.IPRange
	count            int64
}

// takenOf is the addresses that pods have already, nil for none.
func (r *round) takenOf(pool string) *netipx.IPSet {
	if r.view.Taken == nil {
		return nil
	}
	return r.view.Taken(pool)
}

// freeOf is what a pool can give now: what it has, without what any ledger
// holds or may hold, and without what pods have.
func (r *round) freeOf(p *pool) *free {
	taken := r.takenOf(p.Name)
	var version int64
	for _, b := range p.books {
		version = max(version, b.version)
	}
	f := &p.free
	if f.addresses == p.Addresses && f.taken == taken && f.version == version && f.books == len(p.books) {
		return f
	}
	*f = free{version: version, books: len(p.books), addresses: p.Addresses, taken: taken}
	f.ranges = ipam.Without(p.Addresses.Ranges(), r.heldOf(p))
	if taken != nil {
		f.ranges = ipam.Without(f.ranges, taken.Ranges())
	}
	f.count = ipam.CountList(f.ranges)
	return f
}

// heldOf is what ledgers hold of a pool's addresses, or may hold.
func (r *round) heldOf(p *pool) []netipx.IPRange {
	var held []netipx.IPRange
	addresses := p.Addresses.Ranges()
	for _, b := range p.books {
		switch {
		case b.state != known || b.rebuilding():
			held = append(held, b.whole(p))
		case b.pool != p.Name:
			held = append(held, ipam.Common(b.claims(), addresses)...)
		default:
			held = append(held, b.now().HeldList()...)
		}
	}
	return ipam.Merged(held)
}

// whole is all that a ledger may be about.
func (b *book) whole(p *pool) netipx.IPRange {
	if b.part.IsValid() {
		return b.part
	}
	return netipx.RangeOfPrefix(p.Subnet)
}

// stockOf is what is left to be given in this round.
func (r *round) stockOf(p *pool) *ipam.Stock {
	if p.stock == nil {
		p.stock = ipam.StockOf(r.freeOf(p).ranges)
	}
	return p.stock
}

// doubtfulOf is what can be given when nothing else is left: what is in
// quarantine and what no pod has.
func (r *round) doubtfulOf(p *pool) *ipam.Stock {
	if p.doubtful != nil {
		return p.doubtful
	}
	var ranges []netipx.IPRange
	for _, b := range p.books {
		if b.pool == p.Name && b.state == known && !b.rebuilding() {
			for _, run := range b.indexed().quarantined {
				ranges = append(ranges, run.IPRange)
			}
		}
	}
	ranges = ipam.Common(ipam.Merged(ranges), p.Addresses.Ranges())
	ranges = ipam.Without(ranges, r.heldElsewhere(p))
	if taken := r.takenOf(p.Name); taken != nil {
		ranges = ipam.Without(ranges, taken.Ranges())
	}
	p.doubtful = ipam.StockOf(ranges)
	return p.doubtful
}

// heldElsewhere is what ledgers of other pools hold of a pool's subnet.
func (r *round) heldElsewhere(p *pool) []netipx.IPRange {
	others := *p
	others.books = nil
	for _, b := range p.books {
		if b.pool != p.Name {
			others.books = append(others.books, b)
		}
	}
	if len(others.books) == 0 {
		return nil
	}
	return r.heldOf(&others)
}
