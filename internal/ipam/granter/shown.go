package granter

import (
	"slices"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// grants is what a status is to grant of a pool: what ledgers say, and of those
// that are not known what it grants already.
func (r *round) grants(l *lease, pool string, shares []share) []grant {
	all := make([]grant, 0, len(l.shown[pool]))
	for _, s := range shares {
		if s.book.state != known {
			continue
		}
		for i := range s.runs {
			run := &s.runs[i]
			told := grant{run.IPRange, run.Epoch, run.Identity, run.Doubtful}
			all = appendUndisputed(all, told, r.disputed(s.book, unshown(run.IPRange, l.shown[pool])))
		}
	}
	for _, b := range r.now().unknown {
		if b.pool != pool {
			continue
		}
		for _, g := range l.shown[pool] {
			if b.part.IsValid() && !b.part.Overlaps(g.IPRange) {
				continue
			}
			kept := g
			if b.part.IsValid() {
				kept.IPRange = within([]netipx.IPRange{g.IPRange}, b.part)[0]
			}
			all = append(all, kept)
		}
	}
	return joined(all)
}

// appendUndisputed adds what of a grant is not disputed.
func appendUndisputed(all []grant, g grant, disputed []netipx.IPRange) []grant {
	if len(disputed) == 0 {
		return append(all, g)
	}
	for _, addresses := range ipam.Without([]netipx.IPRange{g.IPRange}, disputed) {
		g.IPRange = addresses
		all = append(all, g)
	}
	return all
}

// difference is the grants that are in one of two lists only.
func difference(a, b []grant) []grant {
	if slices.Equal(a, b) {
		return nil
	}
	var out []grant
	for _, g := range a {
		if !slices.Contains(b, g) {
			out = append(out, g)
		}
	}
	for _, g := range b {
		if !slices.Contains(a, g) {
			out = append(out, g)
		}
	}
	return out
}

// grant is addresses as a status shows them.
type grant struct {
	netipx.IPRange

	epoch    int64
	identity string
	doubtful bool
}

// joined is grants in order, with those that go on in the next one joined. It
// reorders its argument.
func joined(all []grant) []grant {
	slices.SortFunc(all, func(a, b grant) int { return a.From().Compare(b.From()) })
	out := all[:0]
	for _, g := range all {
		if n := len(out); n > 0 && out[n-1].goesOn(g) {
			out[n-1].IPRange = netipx.IPRangeFrom(out[n-1].From(), g.To())
			continue
		}
		out = append(out, g)
	}
	return out
}

func (g grant) goesOn(next grant) bool {
	return g.To().Next() == next.From() && g.epoch == next.epoch && g.identity == next.identity && g.doubtful == next.doubtful
}

// unshown is what of a range no grant is of.
func unshown(addresses netipx.IPRange, shown []grant) []netipx.IPRange {
	var covered []netipx.IPRange
	for i := range shown {
		if shown[i].From().Compare(addresses.From()) <= 0 && addresses.To().Compare(shown[i].To()) <= 0 {
			return nil
		}
		if shown[i].Overlaps(addresses) {
			covered = append(covered, shown[i].IPRange)
		}
	}
	return ipam.Without([]netipx.IPRange{addresses}, ipam.Merged(covered))
}
