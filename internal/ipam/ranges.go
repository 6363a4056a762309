package ipam

import (
	"math"
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// The functions on []netipx.IPRange take and give ranges in order that neither
// overlap nor touch, as IPSet.Ranges gives them. They cost the number of ranges.

// Count is how many addresses a set has, at most 2^63-1.
func Count(set *netipx.IPSet) int64 { return CountList(set.Ranges()) }

// CountList is how many addresses ranges have, at most 2^63-1.
func CountList(ranges []netipx.IPRange) int64 {
	var total int64
	for _, r := range ranges {
		if total += size(r); total < 0 {
			return math.MaxInt64
		}
	}
	return total
}

// Size is how many addresses a range has, at most 2^63-1.
func Size(r netipx.IPRange) int64 { return size(r) }

// Merged is ranges of any order that may overlap, in order and joined. It
// reorders its argument.
func Merged(ranges []netipx.IPRange) []netipx.IPRange {
	if len(ranges) < 2 {
		return ranges
	}
	byFirst := func(a, b netipx.IPRange) int { return a.From().Compare(b.From()) }
	if !slices.IsSortedFunc(ranges, byFirst) {
		slices.SortFunc(ranges, byFirst)
	}
	out := ranges[:1:1]
	for _, r := range ranges[1:] {
		last := &out[len(out)-1]
		switch {
		case !follows(last.To(), r.From()):
			out = append(out, r)
		case last.To().Less(r.To()):
			*last = netipx.IPRangeFrom(last.From(), r.To())
		}
	}
	return out
}

// follows says whether an address is at most one behind another of its family.
func follows(last, next netip.Addr) bool {
	return last.Is4() == next.Is4() && (next.Compare(last) <= 0 || last.Next() == next)
}

// Common is the addresses that are in both.
func Common(a, b []netipx.IPRange) []netipx.IPRange {
	var out []netipx.IPRange
	for len(a) > 0 && len(b) > 0 {
		from, to := later(a[0].From(), b[0].From()), earlier(a[0].To(), b[0].To())
		if from.Compare(to) <= 0 && from.Is4() == to.Is4() {
			out = append(out, netipx.IPRangeFrom(from, to))
		}
		if a[0].To().Less(b[0].To()) {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// Without is the addresses of a that are not in b.
func Without(a, b []netipx.IPRange) []netipx.IPRange {
	if len(a) == 0 || len(b) == 0 {
		return a
	}
	out := make([]netipx.IPRange, 0, len(a))
	for _, r := range a {
		for len(b) > 0 && b[0].To().Less(r.From()) {
			b = b[1:]
		}
		out = appendWithout(out, r, b)
	}
	return out
}

// appendWithout adds what is left of one range, of which b begins no earlier
// than the first that may overlap it.
func appendWithout(out []netipx.IPRange, r netipx.IPRange, b []netipx.IPRange) []netipx.IPRange {
	from := r.From()
	for _, cut := range b {
		if r.To().Less(cut.From()) {
			break
		}
		if from.Less(cut.From()) {
			out = append(out, netipx.IPRangeFrom(from, cut.From().Prev()))
		}
		if r.To().Compare(cut.To()) <= 0 {
			return out
		}
		from = cut.To().Next()
	}
	return append(out, netipx.IPRangeFrom(from, r.To()))
}

// Overlap says whether an address is in both.
func Overlap(a, b []netipx.IPRange) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].To().Less(b[0].From()):
			a = a[1:]
		case b[0].To().Less(a[0].From()):
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

// Moved is the addresses with the same host parts in another subnet of the same
// family and length.
func Moved(ranges []netipx.IPRange, from, to netip.Prefix) []netipx.IPRange {
	if from == to {
		return ranges
	}
	out := make([]netipx.IPRange, len(ranges))
	shift := base(to).minus(base(from))
	for i, r := range ranges {
		is4 := r.From().Is4()
		out[i] = netipx.IPRangeFrom(number(r.From()).plus(shift).addr(is4), number(r.To()).plus(shift).addr(is4))
	}
	return out
}

// SetOf is ranges as a set.
func SetOf(ranges []netipx.IPRange) *netipx.IPSet {
	var build netipx.IPSetBuilder
	for _, r := range ranges {
		build.AddRange(r)
	}
	set, err := build.IPSet()
	if err != nil { // ranges that are none: nothing is of them
		return &netipx.IPSet{}
	}
	return set
}

func later(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return b
	}
	return a
}

func earlier(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return a
	}
	return b
}
