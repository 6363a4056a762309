package granter

import (
	"go4.org/netipx"

	"railhead/internal/ipam"
)

// give writes addresses down for a node, or an identity on it, in the ledgers
// of their parts. It says how many: none of a part whose ledger cannot be used.
func (r *round) give(to *bundle, p *pool, ranges []netipx.IPRange, doubtful bool) int64 {
	if len(ranges) == 0 {
		return 0
	}
	holder := ipam.Holder{Node: to.lease.name, Identity: to.identity, Doubtful: doubtful}
	var given int64
	for len(ranges) > 0 {
		b := r.bookOf(p, ranges[0].From())
		here := within(ranges, b.part)
		ranges = ipam.Without(ranges, here)
		if b.state != known || b.rebuilding() {
			continue
		}
		l := b.change()
		if here = ipam.Common(here, b.nextGives); len(here) == 0 {
			continue
		}
		if doubtful {
			l.Change(here, func(run *ipam.Run) bool { return run.Quarantine == nil })
		}
		if err := l.GiveList(here, holder, l.Epoch); err != nil { // R3: the epoch of this write
			r.errs = append(r.errs, err)
			b.forget() // nothing of it is written
			continue
		}
		given += ipam.CountList(here)
		b.tally.granted += ipam.CountList(here)
		r.gone(p, here)
	}
	e := to.lease.entry(p.Name)
	if to.identity != "" {
		e.pinLacks -= given
	} else {
		e.held += given
	}
	return given
}

// gone takes what was given of one pool out of those that have it, too.
func (r *round) gone(p *pool, ranges []netipx.IPRange) {
	for _, other := range p.beside {
		if other.stock != nil {
			other.stock.Remove(ranges)
		}
		if other.doubtful != nil {
			other.doubtful.Remove(ranges)
		}
	}
}
