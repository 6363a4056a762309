package granter

import (
	"cmp"
	"slices"

	"railhead/internal/ipam"
)

// bundle is addresses of several pools that a node or an identity on it is to
// get with the same host parts, as far as possible.
type bundle struct {
	lease    *lease
	identity string
	asks     []ask
}

// ask is a number of addresses of a pool.
type ask struct {
	pool *pool
	n    int64
}

// classes is the asks of a bundle by the geometry of their pools, where there
// are two or more of one.
func (b *bundle) classes() [][]*ask {
	var all [][]*ask
	for i := range b.asks {
		a := &b.asks[i]
		at := slices.IndexFunc(all, func(c []*ask) bool { return ipam.Alike(c[0].pool.Subnet, a.pool.Subnet) })
		if at < 0 {
			all = append(all, []*ask{a})
		} else if !slices.ContainsFunc(all[at], func(other *ask) bool { return other.pool == a.pool }) {
			all[at] = append(all[at], a)
		}
	}
	return slices.DeleteFunc(all, func(c []*ask) bool { return len(c) < 2 })
}

// bundle adds what a node is to get: pools that its pods use together in one
// bundle each, the others by themselves.
func (r *round) bundle(bundles []bundle, l *lease) []bundle {
	for i := range l.entries {
		if l.entries[i].amount > 0 {
			return r.bundleAll(bundles, l)
		}
	}
	return bundles
}

func (r *round) bundleAll(bundles []bundle, l *lease) []bundle {
	for _, group := range l.object.Spec.Groups {
		bundles = r.bundleOf(bundles, l, group.Pools)
	}
	for i := range l.entries {
		bundles = r.bundleOf(bundles, l, []string{l.entries[i].pool})
	}
	return bundles
}

// bundleOf adds what a node is to get of some pools. Of a pool with a greater
// reserve than the others it is not given more: that would not be alike.
func (r *round) bundleOf(bundles []bundle, l *lease, pools []string) []bundle {
	b := bundle{lease: l}
	var entries []*entry
	for _, name := range pools {
		i, ok := slices.BinarySearchFunc(l.entries, name, func(e entry, name string) int { return cmp.Compare(e.pool, name) })
		if ok && l.entries[i].amount > 0 {
			entries = append(entries, &l.entries[i])
		}
	}
	if len(entries) == 0 {
		return bundles
	}
	least := slices.MinFunc(entries, func(a, b *entry) int { return cmp.Compare(a.amount, b.amount) }).amount
	for _, e := range entries {
		if e.amount > 0 { // a group may name a pool twice
			b.asks = append(b.asks, ask{r.pools[e.pool], min(e.amount, max(least, e.wants-e.held))})
			e.amount = 0
		}
	}
	return append(bundles, b)
}
