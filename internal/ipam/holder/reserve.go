package holder

import (
	"maps"
	"slices"
	"time"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
)

// patience is how long a pool has more than it needs, or an identity addresses
// and no pod, before they are given back.
const patience = 10 * time.Second

// demand is what pods wait for.
type demand struct {
	pods       map[string]int // choices, by pool
	asked      map[string]int // those of them that Assign was called for
	identities map[string]bool
	exact      map[*slot]bool // granted and waited for, these and no others
}

// demand counts what pods wait for.
func (h *Holder) demand() demand {
	d := demand{map[string]int{}, map[string]int{}, map[string]bool{}, map[*slot]bool{}}
	for _, w := range h.waiting() {
		d.identities[w.Identity] = true
		switch {
		case w.choice.Exact.IsValid():
			if p := h.pools[w.pool]; p != nil && p.slots[w.choice.Exact] != nil {
				d.exact[p.slots[w.choice.Exact]] = true
			}
		case w.Identity == "":
			d.pods[w.pool]++
			d.asked[w.pool] += count(w.asked)
		}
	}
	return d
}

// balance gives back what should not stay here: revoked and recalled addresses,
// those of identities that are not here, and more than the reserve. R11: it
// gives back nothing that cannot be journaled.
func (h *Holder) balance() {
	if !h.ready { // R7: what is in use is not known
		return
	}
	d := h.demand()
	unwanted := map[string][]*slot{}
	over := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(h.pools)) {
		p := h.pools[name]
		some := p.revoked()
		some = append(some, p.recalled(some, d)...)
		some = append(some, h.surplus(p, some, d, over)...)
		if some = append(some, h.forsaken(p, some, d, over)...); len(some) > 0 {
			unwanted[name] = some
		}
	}
	maps.DeleteFunc(h.excess, func(of string, _ time.Time) bool { return !over[of] })
	if returns := returnsOf(unwanted, func(s *slot) int64 { return s.at }); len(returns) > 0 {
		_, _ = h.commit(record{Returned: returns}) // else they stay until a later attempt
	}
}

// revoked is the idle addresses that the controller would like back, and those
// whose grant is older than one that is known: they are of no use (R6).
func (p *pool) revoked() []*slot {
	return p.sorted(func(s *slot) bool {
		return s.idle() && p.revoke.Contains(s.addr) ||
			s.shown && !s.granted() && s.user == nil && !s.stray && !s.returning && !s.limbo
	})
}

// recalled is as many idle addresses as the controller would like back and has
// not got yet, but for those that pods wait for.
func (p *pool) recalled(but []*slot, d demand) []*slot {
	due := int(p.lent.Recall) - len(but)
	for _, s := range p.slots {
		due -= count(s.shown && s.returning)
	}
	return p.tail(due, d.asked[p.name], but, d)
}

// surplus is the idle addresses above the reserve, if there were too many for
// a while.
func (h *Holder) surplus(p *pool, but []*slot, d demand, over map[string]bool) []*slot {
	keep := int(p.lent.Reserve+p.low()) + d.pods[p.name]
	most := len(p.spare(but, d))
	if most <= keep || !h.forLong(p.name, over) {
		return nil
	}
	return p.tail(most-keep, keep, but, d)
}

// tail is up to n idle addresses, the last to be assigned first, of which some
// are left.
func (p *pool) tail(n, left int, but []*slot, d demand) []*slot {
	spare := p.spare(but, d)
	n = max(0, min(n, len(spare)-left))
	return spare[len(spare)-n:]
}

// spare is the idle addresses that are not given back already, nor asked for by
// their names.
func (p *pool) spare(but []*slot, d demand) []*slot {
	return slices.DeleteFunc(slices.Clone(p.free), func(s *slot) bool {
		return d.exact[s] || slices.Contains(but, s)
	})
}

// forsaken is the idle addresses of identities of which no pod waits here: those
// that are here have all they need.
func (h *Holder) forsaken(p *pool, but []*slot, d demand, over map[string]bool) []*slot {
	return p.sorted(func(s *slot) bool {
		return s.identity != "" && s.idle() && !d.identities[s.identity] &&
			!slices.Contains(but, s) && h.forLong(s.identity, over)
	})
}

// forLong notes that a pool or identity has too much, and says whether it has
// had for a while.
func (h *Holder) forLong(of string, over map[string]bool) bool {
	over[of] = true
	now := h.options.Now()
	since, known := h.excess[of]
	if !known || now.Before(since) { // a clock that was set back begins anew
		h.excess[of] = now
		return false
	}
	return now.Sub(since) >= patience
}

// overdue says whether balance has something to do by now.
func (h *Holder) overdue() bool {
	now := h.options.Now()
	for _, since := range h.excess {
		if now.Sub(since) >= patience || now.Before(since) {
			return true
		}
	}
	return false
}

// returns is what is being given back. What the journal lacks is said to
// nobody (R5), and counts for the journal alone.
func (h *Holder) returns(all bool) []v1alpha1.Return {
	some := map[string][]*slot{}
	for name, p := range h.pools {
		if of := p.sorted(func(s *slot) bool { return s.returning && (all || !s.limbo) }); len(of) > 0 {
			some[name] = of
		}
	}
	return returnsOf(some, func(s *slot) int64 { return s.said })
}

// returnsOf is addresses as returns, in order.
func returnsOf(some map[string][]*slot, epoch func(*slot) int64) []v1alpha1.Return {
	type kind struct {
		epoch      int64
		quarantine string
	}
	var all []v1alpha1.Return
	for _, name := range slices.Sorted(maps.Keys(some)) {
		builds := map[kind]*netipx.IPSetBuilder{}
		for _, s := range some[name] {
			k := kind{epoch(s), s.whyReturned()}
			if builds[k] == nil {
				builds[k] = &netipx.IPSetBuilder{}
			}
			builds[k].Add(s.addr)
		}
		first := len(all)
		for k, build := range builds {
			all = append(all, v1alpha1.Return{Pool: name, Epoch: k.epoch, Quarantine: k.quarantine, Addresses: formatted(build)})
		}
		slices.SortFunc(all[first:], compareReturns)
	}
	return all
}
