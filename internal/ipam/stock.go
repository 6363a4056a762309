package ipam

import (
	"math"
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// Stock is addresses that are there to be given, lowest first. The zero value
// is empty.
type Stock struct {
	ranges []netipx.IPRange
	count  int64
}

// StockOf is a stock of ranges in order.
func StockOf(ranges []netipx.IPRange) *Stock {
	return &Stock{ranges: slices.Clone(ranges), count: CountList(ranges)}
}

// Count is how many addresses are left, at most 2^63-1.
func (s *Stock) Count() int64 { return s.count }

// Ranges is what is left. It is not to be changed.
func (s *Stock) Ranges() []netipx.IPRange { return s.ranges }

// Take takes the n lowest addresses that are not in except, or as many as there
// are. It costs what it gives and what it passes over.
func (s *Stock) Take(n int64, except []netipx.IPRange) []netipx.IPRange {
	var taken, kept []netipx.IPRange
	at := 0
	for ; at < len(s.ranges) && n > 0; at++ {
		here := s.ranges[at : at+1]
		from := len(taken)
		for _, r := range Without(here, except) {
			if n == 0 {
				break
			}
			cut := lowest(r, n)
			n -= size(cut)
			taken = append(taken, cut)
		}
		kept = append(kept, Without(here, taken[from:])...)
	}
	s.replace(at, kept)
	s.left(CountList(taken))
	return taken
}

// replace puts what was kept of the first ranges in their place.
func (s *Stock) replace(first int, kept []netipx.IPRange) {
	if len(kept) > first {
		s.ranges = slices.Concat(kept, s.ranges[first:])
		return
	}
	s.ranges = s.ranges[first-len(kept):]
	copy(s.ranges, kept)
}

// left counts again after some were taken; more than 2^63-1 stay as many.
func (s *Stock) left(taken int64) {
	if s.count == math.MaxInt64 {
		s.count = CountList(s.ranges)
		return
	}
	s.count -= taken
}

// Remove takes addresses out, whether they are there or not.
func (s *Stock) Remove(ranges []netipx.IPRange) {
	if !Overlap(s.ranges, ranges) {
		return
	}
	s.ranges = Without(s.ranges, ranges)
	s.count = CountList(s.ranges)
}

// lowest is the first n addresses of a range, n being above 0.
func lowest(r netipx.IPRange, n int64) netipx.IPRange {
	if size(r) <= n {
		return r
	}
	last := number(r.From()).plus(uint128{lo: uint64(n - 1)})
	return netipx.IPRangeFrom(r.From(), last.addr(r.From().Is4()))
}

// Alike says whether two subnets have the same host parts: one family, one length.
func Alike(a, b netip.Prefix) bool {
	return a.Addr().Is4() == b.Addr().Is4() && a.Bits() == b.Bits()
}
