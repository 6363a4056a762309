package granter

import (
	"slices"

	"railhead/internal/ipam"
)

// rest is what a lease was when nothing was to be done for it: as long as that
// is so, rounds pass it over.
type rest struct {
	shares []share
	of     *shares // that it was last compared with
}

// same says whether a node has what it had.
func (s *rest) same(now *shares, node string) bool {
	if s.of == now {
		return true
	}
	held := now.byNode[node]
	if !slices.EqualFunc(s.shares, held, share.equal) {
		return false
	}
	s.shares, s.of = held, now
	return true
}

func (s share) equal(other share) bool {
	return s.book == other.book && slices.EqualFunc(s.runs, other.runs, sameRun)
}

func sameRun(a, b ipam.Run) bool {
	return a.IPRange == b.IPRange && a.Epoch == b.Epoch && a.Equal(b.Holder)
}

// holds says whether a lease has what it had when it came to rest.
func (r *round) holds(l *lease) bool {
	return l.rest != nil && l.rest.same(r.now(), l.name)
}

// rests says whether nothing is to be done for a lease now, unless others need
// what it has: all that counts is as it was when that was found out.
func (r *round) rests(l *lease) bool {
	if now := r.now(); len(now.unknown)+len(now.rebuilding) > 0 || !r.holds(l) {
		return false
	}
	for i := range l.entries {
		if p, why := r.open(l.entries[i].pool, l.name); why != "" || p.changed {
			return false
		}
	}
	return true
}

// still says whether a lease that rests was not asked for anything in this round.
func (r *round) still(l *lease) bool {
	if !l.resting || !r.holds(l) {
		return false
	}
	for i := range l.entries {
		if e := &l.entries[i]; e.reserve != e.told || e.recall != 0 || len(e.revoke)+len(e.why) > 0 {
			return false
		}
	}
	return true
}

// settleDown lets a lease rest whose status says all, and says that nothing is
// lacking and nothing is wanted back.
func (r *round) settleDown(l *lease) {
	if l.standing != served || len(l.object.Spec.Pins)+len(l.exact) > 0 {
		return
	}
	now := r.now()
	if len(now.unknown) > 0 { // what was to be granted may not have been
		return
	}
	held := now.byNode[l.name]
	for i := range l.entries {
		e := &l.entries[i]
		if e.held != unpinned(of(held, e.pool)) || e.recall != 0 || len(e.revoke)+len(e.why) > 0 {
			return
		}
		e.told = e.reserve
	}
	for _, s := range held {
		for i := range s.runs {
			if len(unshown(s.runs[i].IPRange, l.shown[s.book.pool])) > 0 { // it is disputed
				return
			}
		}
	}
	l.rest = &rest{held, now}
}
