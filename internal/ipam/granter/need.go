package granter

import (
	"cmp"
	"slices"
	"strings"

	"go4.org/netipx"
)

// entry is what a node has, wants and lacks of one pool.
type entry struct {
	pool     string
	wants    int64
	held     int64 // not pinned, and what this round adds
	pinLacks int64 // what identities are to get that never had any
	open     bool  // it may be granted what it wants
	amount   int64 // what it is to get now, reserve included
	reserve  int64
	recall   int64
	revoke   []netipx.IPRange
	why      []string
	asked    bool  // for the node wants some, be it none
	said     bool  // in the status
	told     int64 // reserve that the status says
}

// demand is a node that wants addresses of a pool, and may have them.
type demand struct {
	lease *lease
	*entry
}

// ask finds out what nodes have and want.
func (r *round) ask() {
	all := r.now()
	for _, l := range r.leases {
		if l.resting = l.standing == served && r.rests(l); l.resting {
			r.askAgain(l)
			continue
		}
		l.rest, l.entries = nil, l.entries[:0]
		if l.standing != served {
			continue
		}
		shares := all.byNode[l.name]
		l.list(shares)
		for i := range l.entries {
			e := &l.entries[i]
			e.held = unpinned(of(shares, e.pool))
		}
		for _, want := range l.wants {
			e := l.entry(want.Pool)
			e.wants = want.Addresses
			p, why := r.open(want.Pool, l.name)
			if why == "" {
				e.open = true
				p.demands = append(p.demands, demand{l, e})
			} else if e.held < e.wants {
				e.why = append(e.why, why)
			}
		}
	}
}

// askAgain is ask for a lease that rests.
func (r *round) askAgain(l *lease) {
	for i := range l.entries {
		e := &l.entries[i]
		e.recall, e.revoke, e.why = 0, nil, nil
		if e.open {
			p := r.pools[e.pool]
			p.demands = append(p.demands, demand{l, e})
		}
	}
}

// list makes an entry for each pool that a node has or asks for.
func (l *lease) list(shares []share) {
	names := make([]string, 0, len(l.wants)+4)
	for _, want := range l.wants {
		names = append(names, want.Pool)
	}
	for pool := range l.exact {
		names = append(names, pool)
	}
	for _, p := range l.object.Spec.Pins {
		for _, want := range p.Wants {
			names = append(names, want.Pool)
		}
	}
	asked := len(names)
	for pool := range l.shown {
		names = append(names, pool)
	}
	for _, s := range shares {
		if len(names) == 0 || names[len(names)-1] != s.book.pool {
			names = append(names, s.book.pool)
		}
	}
	wanted := slices.Clone(names[:asked])
	slices.SortFunc(names, strings.Compare)
	for _, name := range slices.Compact(names) {
		l.entries = append(l.entries, entry{pool: name, asked: slices.Contains(wanted, name)})
	}
}

// entry is that of a pool; list made it.
func (l *lease) entry(pool string) *entry {
	i, _ := slices.BinarySearchFunc(l.entries, pool, func(e entry, name string) int { return cmp.Compare(e.pool, name) })
	return &l.entries[i]
}

// giveWants gives nodes what they want, and those that lacked something their reserve.
func (r *round) giveWants() {
	for _, p := range r.order() {
		r.decide(p)
	}
	var bundles []bundle
	for _, l := range r.leases {
		bundles = r.bundle(bundles, l)
	}
	r.place(bundles)
	r.settle()
}

// order is the pools in order of names.
func (r *round) order() []*pool {
	all := make([]*pool, 0, len(r.pools))
	for _, p := range r.pools {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pool) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// settle finds out what nodes lack still.
func (r *round) settle() {
	for _, l := range r.leases {
		for i := range l.entries {
			e := &l.entries[i]
			if n := e.lacks(); n > 0 {
				p := r.pools[e.pool]
				p.short += n
				e.why = append(e.why, r.whyShort(p))
			}
		}
	}
}

// lacks is how many addresses a node was to get and did not.
func (e *entry) lacks() int64 {
	if !e.open {
		return e.pinLacks
	}
	return e.pinLacks + max(0, e.wants-e.held)
}
