package holder

import (
	"cmp"
	"net/netip"
	"slices"
)

// pick is one choice of a request, and the address picked for it.
type pick struct {
	nic    string
	choice *Choice
	ref    PoolRef
	slot   *slot // nil: none yet
}

// choose picks an address for each choice of a request, or for none.
func (h *Holder) choose(r Request, old *entry) ([]pick, error) {
	picks := r.picks()
	h.keep(r.Identity, picks, old)
	if r.Identity == "" {
		h.align(picks, func(*pick) bool { return true })
		h.align(picks, func(p *pick) bool { return p.ref.Subnet.Addr().Is4() })
		h.align(picks, func(p *pick) bool { return p.ref.Subnet.Addr().Is6() })
	}
	short := &ShortError{}
	for i := range picks {
		if picks[i].slot == nil {
			h.pickSingly(r, picks, i, short)
		}
	}
	if !slices.ContainsFunc(picks, func(p pick) bool { return p.slot == nil }) {
		return picks, nil
	}
	if w := h.ask(r); !short.Waiting { // the next attempt begins with the first pools again
		clear(w.passed)
	}
	return nil, short
}

// picks are the choices of a request, each at its first pool.
func (r Request) picks() []pick {
	n := 0
	for i := range r.NICs {
		n += len(r.NICs[i].Choices)
	}
	picks := make([]pick, 0, n)
	for i := range r.NICs {
		for j := range r.NICs[i].Choices {
			p := pick{nic: r.NICs[i].Interface, choice: &r.NICs[i].Choices[j]}
			if len(p.choice.Pools) > 0 {
				p.ref = p.choice.Pools[0]
			}
			picks = append(picks, p)
		}
	}
	return picks
}

// keep picks what an earlier sandbox of the pod has, where that fits.
func (h *Holder) keep(identity string, picks []pick, old *entry) {
	if old == nil {
		return
	}
	for i := range picks {
		p := &picks[i]
		for _, had := range old.Addresses {
			s := h.had(old, had)
			at := slices.IndexFunc(p.choice.Pools, func(ref PoolRef) bool { return ref.Name == had.Pool })
			if s == nil || at < 0 || had.Interface != p.nic || isPicked(picks, s) || !p.choice.takes(s, identity) {
				continue
			}
			p.slot, p.ref = s, p.choice.Pools[at]
			break
		}
	}
}

// had is an address of an earlier sandbox, if the pod may go on having it.
// (R10: it may not if it is granted no more.)
func (h *Holder) had(old *entry, of Assigned) *slot {
	p := h.pools[of.Pool]
	if p == nil {
		return nil
	}
	s := p.slots[of.Prefix.Addr()]
	if s == nil || s.user != old || !s.granted() || s.returning || s.limbo {
		return nil
	}
	return s
}

func isPicked(picks []pick, s *slot) bool {
	return slices.ContainsFunc(picks, func(p pick) bool { return p.slot == s })
}

// pickSingly picks for one choice: of the first pool with a free address, unless
// an earlier pool is waited for.
func (h *Holder) pickSingly(r Request, picks []pick, i int, short *ShortError) {
	p := &picks[i]
	if len(p.choice.Pools) == 0 {
		short.Pools = append(short.Pools, PoolShort{p.nic, "", "no pool may serve it"})
		return
	}
	for at, ref := range p.choice.Pools {
		if s := h.freeIn(picks, p.choice, ref.Name, r.Identity); s != nil {
			p.slot, p.ref = s, ref
			return
		}
		w := h.ask(r)
		short.Pools = append(short.Pools, PoolShort{p.nic, ref.Name, h.reason(ref.Name, p.choice)})
		if r.Settle || at < w.passed[i] {
			continue
		}
		if !h.answeredShort(ref.Name, w.since[i]) {
			short.Waiting = true
			return
		}
		w.passed[i] = at + 1
		h.touch()
		w.since[i] = h.changes
	}
}

// freeIn is the address of a pool that a choice would have, nil if there is
// none.
func (h *Holder) freeIn(picks []pick, c *Choice, name, identity string) *slot {
	p := h.pools[name]
	switch {
	case p == nil:
		return nil
	case c.Exact.IsValid():
		if s := p.slots[c.Exact]; s != nil && s.idle() && c.takes(s, identity) && !isPicked(picks, s) {
			return s
		}
		return nil
	case identity != "":
		for _, s := range p.sorted(func(s *slot) bool { return s.identity == identity && s.idle() }) {
			if !isPicked(picks, s) {
				return s
			}
		}
		return nil
	}
	for _, s := range p.free {
		if !isPicked(picks, s) {
			return s
		}
	}
	return nil
}

// takes says whether a choice may be met by an address of this node. R12: a
// pinned one is for its identity alone, and an identity has no other but one
// that was asked for by name.
func (c *Choice) takes(s *slot, identity string) bool {
	if c.Exact.IsValid() {
		return s.addr == c.Exact && (s.identity == "" || s.identity == identity)
	}
	return s.identity == identity
}

// assigned is a pick as an answer.
func (p *pick) assigned() Assigned {
	return Assigned{
		Interface: p.nic, Pool: p.ref.Name, Prefix: netip.PrefixFrom(p.slot.addr, p.ref.Subnet.Bits()),
		Epoch: p.slot.epoch, Doubtful: p.slot.doubtful,
	}
}

// reason is why a pool has no address for a choice.
func (h *Holder) reason(name string, c *Choice) string {
	p := h.pools[name]
	said := "nothing is granted to this node yet"
	if h.lease != nil {
		said = cmp.Or(h.lease.Status.Reason, said)
	}
	if p != nil {
		said = cmp.Or(p.lent.Short, said)
	}
	if !c.Exact.IsValid() || p == nil || p.slots[c.Exact] == nil {
		return said
	}
	switch s := p.slots[c.Exact]; {
	case s.user != nil:
		return c.Exact.String() + " is in use by pod " + s.user.Pod.String()
	case s.stray:
		return c.Exact.String() + " is in use at " + h.strays[c.Exact]
	case s.identity != "":
		return c.Exact.String() + " is kept for " + s.identity
	}
	return said
}
