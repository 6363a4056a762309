package granter

import (
	"strings"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// place finds addresses for bundles, and gives them: first what can be alike in
// several pools, then the rest of each pool, lowest first, then what is doubtful.
func (r *round) place(bundles []bundle) {
	r.placeAlike(bundles)
	for i := range bundles {
		b := &bundles[i]
		for j := range b.asks {
			a := &b.asks[j]
			except := b.lease.returning[a.pool.Name] // R4
			if a.n > 0 {
				a.n -= r.give(b, a.pool, r.stockOf(a.pool).Take(a.n, except), false)
			}
			if a.n > 0 {
				a.n -= r.give(b, a.pool, r.doubtfulOf(a.pool).Take(a.n, except), true)
			}
		}
	}
}

// alike is bundles that want the same pools of one geometry, which are worked
// out together: what is free in all of them is found once.
type alike struct {
	pools []*pool
	asks  [][]*ask // one list a bundle, in the order of pools
	of    []*bundle
}

// placeAlike gives addresses with the same host parts.
func (r *round) placeAlike(bundles []bundle) {
	byPools := map[string]*alike{}
	var order []*alike
	for i := range bundles {
		for _, asks := range bundles[i].classes() {
			var key strings.Builder
			for _, a := range asks {
				key.WriteString(a.pool.Name + "\n")
			}
			same := byPools[key.String()]
			if same == nil {
				same = &alike{}
				for _, a := range asks {
					same.pools = append(same.pools, a.pool)
				}
				byPools[key.String()] = same
				order = append(order, same)
			}
			same.asks, same.of = append(same.asks, asks), append(same.of, &bundles[i])
		}
	}
	for _, same := range order {
		r.placeSame(same)
	}
}

// placeSame gives the lowest host parts that are free in all pools to one
// bundle after the other.
func (r *round) placeSame(same *alike) {
	base := same.pools[0].Subnet
	common := r.stockOf(same.pools[0]).Ranges()
	for _, p := range same.pools[1:] {
		common = ipam.Common(common, ipam.Moved(r.stockOf(p).Ranges(), p.Subnet, base))
	}
	stock := ipam.StockOf(common)
	given := make([][]netipx.IPRange, len(same.pools))
	for i, asks := range same.asks {
		n := asks[0].n
		var except []netipx.IPRange
		for j, a := range asks {
			n = min(n, a.n)
			except = append(except, ipam.Moved(same.of[i].lease.returning[a.pool.Name], same.pools[j].Subnet, base)...) // R4
		}
		taken := stock.Take(n, ipam.Merged(except))
		for j, a := range asks {
			moved := ipam.Moved(taken, base, a.pool.Subnet)
			a.n -= r.give(same.of[i], a.pool, moved, false)
			given[j] = append(given[j], moved...)
		}
	}
	for j, p := range same.pools {
		r.stockOf(p).Remove(ipam.Merged(given[j]))
	}
}
