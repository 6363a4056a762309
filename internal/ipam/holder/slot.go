package holder

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
)

// slot is all that is known of one address of a pool.
type slot struct {
	addr  netip.Addr
	epoch int64 // greatest of any grant of it that this node heard of

	shown    bool  // in the newest status
	at       int64 // its epoch there
	identity string
	doubtful bool
	vouched  int64 // the epoch of the doubtful grant under which it was probed, and nobody answered

	user  *entry // the pod that has it
	stray bool   // in a pod's namespace, and nobody knows why

	returning  bool
	said       int64 // the epoch of the return
	quarantine string

	freed uint64 // order of its last release; 0: nobody had it
	limbo bool   // what happened last is not in the journal
}

// granted says whether the node may have the address. (R6: a grant older than
// one that is known is none.)
func (s *slot) granted() bool { return s.shown && s.at >= s.epoch }

// idle says whether the address is the node's and nobody's (R5).
func (s *slot) idle() bool {
	return s.granted() && s.user == nil && !s.stray && !s.returning && !s.limbo
}

// spare says whether any pod may have the address now.
func (s *slot) spare() bool { return s.identity == "" && s.idle() }

// void says whether nothing at all is known of it.
func (s *slot) void() bool { return !s.shown && s.user == nil && !s.returning && !s.limbo }

// before orders idle addresses: those without doubt first, then those that
// nobody had, then the longest free, then by address.
func (s *slot) before(o *slot) int {
	return cmp.Or(cmp.Compare(s.rank(), o.rank()), s.addr.Compare(o.addr))
}

func (s *slot) rank() uint64 {
	if s.doubtful {
		return s.freed | 1<<63
	}
	return s.freed
}

// whyReturned is the quarantine that a return asks for: what is in doubt still
// stays in doubt. After a restart nobody remembers probes, which is safe.
func (s *slot) whyReturned() string {
	if s.quarantine == "" && s.doubtful && s.vouched != s.at {
		return whyNotProbed
	}
	return s.quarantine
}

const whyNotProbed = "was in doubt, and was not probed"

// pool is the addresses of one pool that concern this node.
type pool struct {
	name   string
	slots  map[netip.Addr]*slot
	free   []*slot             // idle and not pinned, in order of before
	lent   v1alpha1.LeasedPool // the newest status
	revoke *netipx.IPSet       // of lent
}

// slot returns what is known of an address, and begins to know it.
func (h *Holder) slot(name string, addr netip.Addr) (*pool, *slot) {
	p := h.pool(name)
	s := p.slots[addr]
	if s == nil {
		_, stray := h.strays[addr]
		s = &slot{addr: addr, stray: stray}
		p.slots[addr] = s
	}
	return p, s
}

// pool returns a pool, and begins to know it.
func (h *Holder) pool(name string) *pool {
	p := h.pools[name]
	if p == nil {
		p = &pool{name: name, slots: map[netip.Addr]*slot{}, revoke: &netipx.IPSet{}}
		h.pools[name] = p
	}
	return p
}

// change changes what is known of one address and keeps free in order.
func (p *pool) change(s *slot, do func(*slot)) {
	if s.spare() {
		p.drop(s)
	}
	do(s)
	switch {
	case s.void():
		delete(p.slots, s.addr)
	case s.spare():
		p.add(s)
	}
}

// drop takes an address out of free: nearly always the first one.
func (p *pool) drop(s *slot) {
	if len(p.free) > 0 && p.free[0] == s {
		p.free = p.free[1:]
	} else if i, is := slices.BinarySearchFunc(p.free, s, (*slot).before); is {
		p.free = slices.Delete(p.free, i, i+1)
	}
}

// add puts an address into free: nearly always as the last one.
func (p *pool) add(s *slot) {
	i := len(p.free)
	if i > 0 && s.before(p.free[i-1]) < 0 {
		i, _ = slices.BinarySearchFunc(p.free, s, (*slot).before)
	}
	p.free = slices.Insert(p.free, i, s)
}

// settle puts free in order after many changes.
func (p *pool) settle() {
	p.free = p.free[:0]
	for addr, s := range p.slots {
		switch {
		case s.void():
			delete(p.slots, addr)
		case s.spare():
			p.free = append(p.free, s)
		}
	}
	slices.SortFunc(p.free, (*slot).before)
}

// sorted returns the addresses of which something is true, by address.
func (p *pool) sorted(is func(*slot) bool) []*slot {
	var some []*slot
	for _, s := range p.slots {
		if is(s) {
			some = append(some, s)
		}
	}
	slices.SortFunc(some, func(a, b *slot) int { return a.addr.Compare(b.addr) })
	return some
}

// low is how many idle addresses a pool with a reserve should have at least.
func (p *pool) low() int64 { return (p.lent.Reserve + 3) / 4 }
