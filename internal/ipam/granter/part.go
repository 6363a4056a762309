package granter

import (
	"net/netip"
	"strings"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// bookOf is the ledger of the part that an address of a pool is in, a new one
// if there is none.
func (r *round) bookOf(p *pool, addr netip.Addr) *book {
	for _, b := range p.books {
		if b.pool == p.Name && b.part.Contains(addr) {
			return b
		}
	}
	b := r.newBook(p, ipam.PartOf(p.Subnet, addr))
	if b.lost = r.shownIn(p.Name, b.part); b.lost {
		// Nodes were told of grants in this part: its ledger was there and is not.
		b.state, r.report.Again = missing, true
		return b
	}
	r.readGivingOf(p, b)
	r.importTaken(p, b)
	return b
}

// newBook is a ledger to be created. It begins above all epochs that leases know
// of the pool, so that no return of an earlier time means a grant of this one (R3).
func (r *round) newBook(p *pool, part netipx.IPRange) *book {
	name := ipam.LedgerName(p.Name, p.Subnet, part)
	for r.books[name] != nil { // of an earlier pool of this name with another subnet
		name = ipam.LedgerName(p.Name+".of-"+strings.NewReplacer(":", "-", ".", "-").Replace(part.From().StringExpanded()), p.Subnet, part)
		if r.books[name] != nil {
			name += "x"
		}
	}
	b := &book{name: name, pool: p.Name, part: part, state: known, clock: &r.clock}
	b.ledger = ipam.NewLedger(name, p.Pool, part)
	b.ledger.Epoch = r.lastEpoch(p.Name)
	b.bump()
	r.books[name] = b
	r.overlaps.stale = true
	for _, other := range r.pools {
		if other == p || part.Overlaps(netipx.RangeOfPrefix(other.Subnet)) {
			other.books = append(other.books, b)
		}
	}
	return b
}

// whyImported is the reason of addresses that pods had when a ledger was made.
const whyImported = "in use before Railhead"

// importTaken keeps what pods have already from being granted.
func (r *round) importTaken(p *pool, b *book) {
	taken := r.takenOf(p.Name)
	if taken == nil {
		return
	}
	for _, addresses := range within(taken.Ranges(), b.part) {
		for addr := addresses.From(); addresses.Contains(addr); addr = addr.Next() {
			pod := ""
			if r.view.TakenBy != nil {
				pod = r.view.TakenBy(p.Name, addr)
			}
			l := b.change()
			one := []netipx.IPRange{netipx.IPRangeFrom(addr, addr)}
			holder := ipam.Holder{Quarantine: &v1alpha1.Quarantine{Reason: whyImported, Since: r.since(), Pod: pod}}
			if err := l.GiveList(one, holder, l.Epoch); err != nil {
				r.errs = append(r.errs, err)
				continue
			}
			b.tally.quarantined++
		}
	}
}
