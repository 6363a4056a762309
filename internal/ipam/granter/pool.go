package granter

import (
	"fmt"
	"slices"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// pool is a pool of the view, and what this granter keeps of it from round to round.
type pool struct {
	ipam.Pool

	changed bool    // what it gives, since the last round
	books   []*book // ledgers that may hold addresses of its subnet, of any pool
	beside  []*pool // others whose subnet overlaps
	level   int64   // reserve that every node may have
	free    free
	total   count

	// Of this round:
	stock    *ipam.Stock
	doubtful *ipam.Stock
	demands  []demand
	short    int64 // addresses wanted and not there
	whyShort string
	recalled int64
}

// count is how many addresses a set has.
type count struct {
	of *netipx.IPSet
	n  int64
}

// readPools takes the pools of the view.
func (r *round) readPools() {
	here := make(map[string]*pool, len(r.view.Pools))
	same := len(r.pools) == len(r.view.Pools)
	for name, now := range r.view.Pools {
		p := r.pools[name]
		if p == nil {
			p = &pool{level: r.levelSaid(name)}
		}
		same = same && p.Subnet == now.Subnet
		p.changed = p.Addresses != now.Addresses || p.Subnet != now.Subnet
		p.Pool = now
		p.stock, p.doubtful, p.demands, p.short, p.recalled = nil, nil, p.demands[:0], 0, 0
		p.whyShort = ""
		if p.total.of != now.Addresses {
			p.total = count{now.Addresses, ipam.Count(now.Addresses)}
		}
		here[name] = p
	}
	r.pools = here
	r.readOverlaps(same)
}

// overlaps is what readOverlaps worked out of.
type overlaps struct {
	books []*book
	parts []netipx.IPRange
	stale bool // ledgers came or went since
}

func (o *overlaps) of(books []*book) bool {
	return !o.stale && slices.Equal(o.books, books) &&
		slices.EqualFunc(o.parts, books, func(part netipx.IPRange, b *book) bool { return part == b.part })
}

// readOverlaps finds the ledgers that matter to each pool: its own, and those
// of pools whose subnet overlaps, be they gone.
func (r *round) readOverlaps(same bool) {
	books := r.now().books
	if same && r.overlaps.of(books) {
		return
	}
	r.overlaps = overlaps{books: books}
	for _, b := range books {
		r.overlaps.parts = append(r.overlaps.parts, b.part)
	}
	all := r.order()
	for _, p := range all {
		p.books, p.beside = p.books[:0], p.beside[:0]
		whole := netipx.RangeOfPrefix(p.Subnet)
		for _, other := range all {
			if other != p && other.Subnet.Overlaps(p.Subnet) {
				p.beside = append(p.beside, other)
			}
		}
		for _, b := range books {
			if b.pool == p.Name || b.part.IsValid() && b.part.Overlaps(whole) {
				p.books = append(p.books, b)
			}
		}
	}
}

// levelSaid is the reserve of a pool that an earlier leader told nodes, -1 if none did.
func (r *round) levelSaid(name string) int64 {
	level := int64(-1)
	for _, l := range r.leases {
		for i := range l.object.Status.Pools {
			if p := &l.object.Status.Pools[i]; p.Pool == name {
				level = max(level, p.Reserve)
			}
		}
	}
	return level
}

// open is a pool that a node may be granted addresses of, or why it may not.
func (r *round) open(name, node string) (*pool, string) {
	p := r.pools[name]
	switch {
	case p == nil:
		return nil, fmt.Sprintf("there is no pool %s", name)
	case p.Deleting:
		return p, fmt.Sprintf("pool %s is being deleted", name)
	case p.Closed != "":
		return p, fmt.Sprintf("pool %s gives nothing: %s", name, p.Closed)
	case p.Serves != nil && !p.Serves(node):
		return p, fmt.Sprintf("pool %s does not serve node %s", name, node)
	}
	return p, ""
}
