package policy

import (
	"net/netip"
	"slices"
	"sort"

	"go4.org/netipx"
)

// spans finds which of many ranges overlap one, each with its owner. Ranges
// that overlap one another may be in it.
type spans[K comparable] struct {
	// Sorted by first address. reach is the last address of all up to here,
	// which ends the search backwards.
	sorted []span[K]
	reach  []netip.Addr
}

// span is one range and whose it is.
type span[K comparable] struct {
	netipx.IPRange

	owner K
}

// add puts ranges of an owner.
func (s *spans[K]) add(owner K, ranges []netipx.IPRange) {
	for _, r := range ranges {
		at := s.from(r.From())
		s.sorted = slices.Insert(s.sorted, at, span[K]{r, owner})
		s.reach = slices.Insert(s.reach, at, netip.Addr{})
		s.extend(at)
	}
}

// drop takes ranges of an owner, as they were put.
func (s *spans[K]) drop(owner K, ranges []netipx.IPRange) {
	for _, r := range ranges {
		for at := s.from(r.From()); at < len(s.sorted) && s.sorted[at].From() == r.From(); at++ {
			if s.sorted[at].owner == owner && s.sorted[at].To() == r.To() {
				s.sorted = slices.Delete(s.sorted, at, at+1)
				s.reach = slices.Delete(s.reach, at, at+1)
				s.extend(at)
				break
			}
		}
	}
}

// overlapping calls yield with each range that overlaps r, from the last to
// the first, until it returns false.
func (s *spans[K]) overlapping(r netipx.IPRange, yield func(span[K]) bool) {
	end := sort.Search(len(s.sorted), func(i int) bool { return r.To().Less(s.sorted[i].From()) })
	for i := end - 1; i >= 0 && !s.reach[i].Less(r.From()); i-- {
		if !s.sorted[i].To().Less(r.From()) && !yield(s.sorted[i]) {
			return
		}
	}
}

// from is the place of the first range that begins at an address or behind it.
func (s *spans[K]) from(addr netip.Addr) int {
	return sort.Search(len(s.sorted), func(i int) bool { return !s.sorted[i].From().Less(addr) })
}

// extend makes reach right again from a place on.
func (s *spans[K]) extend(at int) {
	for i := at; i < len(s.sorted); i++ {
		to := s.sorted[i].To()
		if i > 0 && to.Less(s.reach[i-1]) {
			to = s.reach[i-1]
		}
		if i > at && s.reach[i] == to {
			return
		}
		s.reach[i] = to
	}
}
