package granter

import (
	"cmp"
	"math"
	"slices"
)

// countMost is the most that counts of a pool's free addresses: sums with larger
// numbers, such as those of a /64, would not fit.
const countMost = math.MaxInt64 / 4

// decide is how many addresses of a pool each node gets.
func (r *round) decide(p *pool) {
	var lacking, idle int64
	var lack []demand
	for _, d := range p.demands {
		if n := d.wants - d.held; n > 0 {
			d.amount = n
			lacking += n
			lack = append(lack, d)
		} else {
			idle -= n
		}
	}
	have := r.freeOf(p).count
	if p.stock != nil {
		have = p.stock.Count()
	}
	have = min(have, countMost)
	p.level = r.reserve(p, have-lacking+idle, lacking > have)
	for _, d := range p.demands {
		d.reserve = p.level
	}
	switch {
	case lacking > have:
		fair(lack, have+r.doubtfulOf(p).Count())
	case lacking+p.level*int64(len(lack)) <= have:
		for _, d := range lack {
			d.amount += p.level
		}
	}
}

// reserve is how many addresses beyond its needs each node may have: its share
// of half of what nobody needs, in steps of powers of two. It is raised only
// when there is clearly more, so that it does not follow every pod.
func (r *round) reserve(p *pool, unneeded int64, shortage bool) int64 {
	if shortage || unneeded <= 0 || len(p.demands) == 0 {
		return 0
	}
	raw := unneeded / (2 * int64(len(p.demands)))
	step := int64(0)
	for next := int64(1); next <= raw && step < r.options.ReserveMost; next *= 2 {
		step = min(next, r.options.ReserveMost)
	}
	if p.level >= 0 && step > p.level && raw < step+step/2 {
		return max(p.level, step/2)
	}
	return step
}

// fair divides what is there among nodes that lack addresses: those that hold
// least come first, one address at a time.
func fair(lack []demand, have int64) {
	slices.SortFunc(lack, func(a, b demand) int {
		return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.lease.name, b.lease.name))
	})
	upTo := func(level int64) (total int64) {
		for _, d := range lack {
			total += clamp(level-d.held, d.wants-d.held)
		}
		return total
	}
	low, high := int64(0), int64(0) // all get what brings them to low, and not to high
	for _, d := range lack {
		high = max(high, d.wants+1)
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; upTo(middle) <= have {
			low = middle
		} else {
			high = middle
		}
	}
	rest := have - upTo(low)
	for _, d := range lack {
		d.amount = clamp(low-d.held, d.wants-d.held)
		if rest > 0 && d.held+d.amount == low && low < d.wants {
			d.amount++
			rest--
		}
	}
}

// clamp is a number between 0 and most.
func clamp(n, most int64) int64 { return max(0, min(n, most)) }
