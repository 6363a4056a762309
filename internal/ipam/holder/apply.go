package holder

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
)

// apply changes memory as a record says: now, or again at the next start.
func (h *Holder) apply(r record) {
	h.touch()
	if r.Opened != nil {
		h.session, h.sequence = r.Opened.Session, r.Opened.Sequence
	}
	if r.Lease != nil {
		h.applyStatus(r.Lease)
	}
	if r.Earlier != nil {
		h.dropReturns()
		h.applyReturned(r.Earlier.Returns)
		if h.seen != nil { // it may have answered some of them already
			h.applyStatus(h.seen)
		}
	}
	if r.Released != nil {
		h.applyReleased(r.Released)
	}
	if r.Assigned != nil {
		h.applyAssigned(r.Assigned)
	}
	h.applyReturned(r.Returned)
	if r.Strays != nil {
		h.applyStrays(r.Strays.Addresses)
	}
	h.applyFreed(r.Freed)
	h.ready = h.ready || r.Ready
}

// applyAssigned gives addresses to a pod. What an earlier sandbox of it had
// besides is free.
func (h *Holder) applyAssigned(a *Assignment) {
	h.sequence = max(h.sequence, a.Sequence)
	e := &entry{Assignment: a}
	old := h.pods[a.PodUID]
	h.pods[a.PodUID] = e
	for i := range a.Addresses {
		given := &a.Addresses[i]
		h.learn(PoolRef{given.Pool, given.Prefix.Masked()})
		p, s := h.slot(given.Pool, given.Prefix.Addr())
		p.change(s, func(s *slot) { s.user, s.epoch = e, max(s.epoch, given.Epoch) })
	}
	if old != nil {
		h.free(old)
	}
}

// applyReleased takes the addresses from a pod.
func (h *Holder) applyReleased(r *released) {
	if e := h.pods[r.PodUID]; e != nil && e.Sandbox == r.Sandbox && e.Sequence == r.Sequence {
		delete(h.pods, r.PodUID)
		h.free(e)
	}
}

// free takes from an assignment what it still has. All of it goes to the tail
// at once, so that rails stay alike.
func (h *Holder) free(e *entry) {
	h.order++
	for i := range e.Addresses {
		given := &e.Addresses[i]
		p, s := h.slot(given.Pool, given.Prefix.Addr())
		p.change(s, func(s *slot) {
			if s.user == e {
				s.user, s.freed = nil, h.order
				h.leaveInLimbo(p, s)
			}
		})
	}
}

// leaveInLimbo keeps an address from use while the journal lacks what happened (R11).
func (h *Holder) leaveInLimbo(p *pool, s *slot) {
	if !h.behind {
		return
	}
	s.limbo = true
	if h.limbo[p.name] == nil {
		h.limbo[p.name] = map[netip.Addr]bool{}
	}
	h.limbo[p.name][s.addr] = true
}

// applyReturned begins to give addresses back. What an earlier run gave back and
// makes no sense is nobody's to take.
func (h *Holder) applyReturned(all []v1alpha1.Return) {
	for _, r := range all {
		for _, text := range r.Addresses {
			addresses, _ := expand(text, grantedMost)
			for _, addr := range addresses {
				p, s := h.slot(r.Pool, addr)
				p.change(s, func(s *slot) {
					s.returning, s.said, s.quarantine = true, r.Epoch, r.Quarantine
					h.leaveInLimbo(p, s)
				})
			}
		}
	}
}

// dropReturns forgets all returns.
func (h *Holder) dropReturns() {
	for _, p := range h.pools {
		for _, s := range p.slots {
			s.returning, s.quarantine = false, ""
		}
		p.settle()
	}
}

// applyStrays keeps addresses from use, and no others.
func (h *Holder) applyStrays(all map[netip.Addr]string) {
	h.strays = all
	for _, p := range h.pools {
		for addr, s := range p.slots {
			_, s.stray = all[addr]
		}
		p.settle()
	}
}

// applyFreed says in which order addresses became free.
func (h *Holder) applyFreed(order map[string][]netip.Addr) {
	longest := 0
	for name, all := range order {
		for i, addr := range all {
			if p := h.pool(name); p.slots[addr] != nil {
				p.change(p.slots[addr], func(s *slot) { s.freed = h.order + uint64(i) + 1 })
			}
		}
		longest = max(longest, len(all))
	}
	h.order += uint64(longest)
}

// applyStatus takes what a status grants, and ends returns that it acknowledges.
func (h *Holder) applyStatus(now *status) {
	all, _ := leasedOf(now) // what makes no sense was told when the status was new
	h.seen = now
	mine := now.NodeUID == h.options.UID // R5: of another node it grants nothing, and answers nothing
	for name := range all {
		if mine {
			h.pool(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.pools)) {
		p := h.pools[name]
		of := all[name]
		if !mine {
			of = leased{}
		}
		p.lent, p.revoke = of.pool, cmp.Or(of.revoke, &netipx.IPSet{})
		for addr := range of.grants {
			h.slot(name, addr)
		}
		for addr, s := range p.slots {
			if g := of.grants[addr]; g != nil || !of.partial {
				s.show(g, mine)
			}
		}
		p.settle()
	}
}

// show says what the newest status has of an address; nil: nothing.
func (s *slot) show(g *v1alpha1.Grant, mine bool) {
	if g == nil {
		s.shown = false
		if mine { // R5: a return ends by a status that lacks the address, and by nothing else
			s.returning, s.quarantine = false, ""
		}
		return
	}
	s.shown, s.at, s.identity, s.doubtful = true, g.Epoch, g.Identity, g.Doubtful
	s.epoch = max(s.epoch, g.Epoch)
	if s.returning {
		s.said = g.Epoch // R5: another epoch is said again
	}
}
