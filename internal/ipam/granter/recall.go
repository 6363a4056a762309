package granter

import (
	"cmp"
	"slices"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// recall asks back what others lack, and what nodes should not have any more.
func (r *round) recall() {
	for _, p := range r.order() {
		if p.short > 0 {
			p.recalled = recall(p.demands, p.short, r.idleHolders(p))
		}
	}
	shares := r.now()
	for _, l := range r.leases {
		for i := range l.entries {
			e := &l.entries[i]
			if l.resting {
				e.revoke = ipam.Merged(e.revoke)
				continue
			}
			p, why := r.open(e.pool, l.name)
			r.revoke(e, p, why != "", of(shares.byNode[l.name], e.pool))
		}
	}
}

// idleHolders is nodes that hold addresses of a pool and want none of it.
func (r *round) idleHolders(p *pool) []demand {
	var all []demand
	for _, l := range r.leases {
		for i := range l.entries {
			if e := &l.entries[i]; e.pool == p.Name && !e.open && e.held > 0 {
				all = append(all, demand{l, e})
			}
		}
	}
	return all
}

// recall asks back as many addresses as are short: from nodes that hold more
// than they want, and if those are too few, from all others evenly, since what
// becomes unused there is more needed here.
func recall(demands []demand, short int64, idle []demand) int64 {
	holders := slices.Concat(demands, idle)
	slices.SortFunc(holders, func(a, b demand) int {
		return cmp.Or(cmp.Compare(b.held-b.wants, a.held-a.wants), cmp.Compare(a.lease.name, b.lease.name))
	})
	left := short
	for _, d := range holders {
		if over := clamp(d.held-d.wants, left); over > 0 {
			d.recall = over
			left -= over
		}
	}
	if left == 0 {
		return short
	}
	full := slices.DeleteFunc(slices.Clone(holders), func(d demand) bool { return d.held == 0 || d.held < d.wants })
	for _, d := range full {
		share := (left + int64(len(full)) - 1) / int64(len(full))
		d.recall = min(d.held, d.recall+share)
	}
	var asked int64
	for _, d := range holders {
		asked += d.recall
	}
	return asked
}

// revoke asks a node for what its pool does not give any more, or not to it.
func (r *round) revoke(e *entry, p *pool, closed bool, shares []share) {
	for _, s := range shares {
		for i := range s.runs {
			addresses := s.runs[i].IPRange
			switch {
			case closed:
				e.revoke = append(e.revoke, addresses)
			case !p.Addresses.ContainsRange(addresses):
				e.revoke = append(e.revoke, ipam.Without([]netipx.IPRange{addresses}, p.Addresses.Ranges())...)
			}
		}
	}
	e.revoke = ipam.Merged(e.revoke)
}
