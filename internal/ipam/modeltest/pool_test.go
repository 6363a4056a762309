package modeltest

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"railhead/internal/ipam/holder"
)

func (c *cluster) names() []string {
	return append(slices.Clone(c.rails), c.solo, c.other, c.six)
}

// editPool is a user's edit of one pool.
func (c *cluster) editPool() {
	names := c.names()
	n := names[c.w.rng.IntN(len(names))]
	now := c.w.api.pools.live[n]
	if now == nil {
		c.remakePool(n)
		return
	}
	p := *now
	switch k := c.w.rng.IntN(10); {
	case k < 3:
		c.shrink(&p)
	case k < 5:
		c.grow(&p)
	case k < 8:
		if p.closed == "" {
			c.w.seen("pool disabled")
			p.closed = "it is disabled"
		} else {
			c.w.seen("pool enabled")
			p.closed = ""
		}
	case k < 9 && !p.deleting:
		c.w.seen("pool deleted")
		p.deleting = true
	case p.deleting && !c.inUse(n):
		c.w.note("pool %s gone", n)
		c.w.api.pools.remove(n)
		c.always[n] = &netipx.IPSet{}
		return
	}
	if p.closed != now.closed || p.deleting || !p.addresses.Equal(now.addresses) {
		c.unpinPool(n)
	}
	c.w.note("pool %s: closed %q, deleting %t, %v", n, p.closed, p.deleting, p.addresses.Ranges())
	c.putPool(&p)
}

// inUse is what keeps a pool from going: pods that have addresses of it.
func (c *cluster) inUse(pool string) bool {
	p := c.w.api.pools.live[pool]
	for addr := range c.w.wire.claims {
		if p.subnet.Contains(addr) {
			return true
		}
	}
	return false
}

func (c *cluster) shrink(p *poolObject) {
	c.w.seen("pool shrunk")
	ranges := p.addresses.Ranges()
	if len(ranges) == 0 || p.name == c.six {
		return
	}
	var b netipx.IPSetBuilder
	b.AddSet(p.addresses)
	for range 1 + c.w.rng.IntN(3) {
		r := ranges[c.w.rng.IntN(len(ranges))]
		b.Remove([]netip.Addr{r.From(), r.To()}[c.w.rng.IntN(2)])
	}
	p.addresses, _ = b.IPSet()
}

func (c *cluster) grow(p *poolObject) {
	c.w.seen("pool grown")
	if ranges := p.addresses.Ranges(); len(ranges) > 0 && p.name != c.six {
		var b netipx.IPSetBuilder
		b.AddSet(p.addresses)
		b.Add(ranges[len(ranges)-1].To().Next())
		b.Add(ranges[0].From().Prev())
		p.addresses, _ = b.IPSet()
	}
}

// remakePool makes a pool again, with another UID and perhaps other addresses.
func (c *cluster) remakePool(n string) {
	c.w.seen("pool made again")
	subnet := c.ever[n].Prefixes()[0].Addr()
	var of netip.Prefix
	for _, s := range []string{"10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24", "10.1.0.0/16", "2001:db8::/64"} {
		if p := netip.MustParsePrefix(s); p.Contains(subnet) {
			of = p
		}
	}
	set := c.ever[n]
	c.w.note("pool %s made again", n)
	c.putPool(&poolObject{name: n, uid: c.w.api.uid(), subnet: of, addresses: set})
}

// unpinPool forgets what identities had of a pool whose edits or losses allow
// that they get something else.
func (c *cluster) unpinPool(pool string) {
	for _, id := range sorted(c.pins) {
		for key := range c.pins[id] {
			if key == pool {
				delete(c.pins, id)
				break
			}
		}
	}
}

// pinned checks and remembers what an identity has.
func (c *cluster) pinned(r *podRun, a holder.Assignment) {
	pod := r.pod
	if pod.identity == "" {
		return
	}
	have := map[string][]netip.Addr{}
	for _, given := range a.Addresses {
		have[given.Pool] = append(have[given.Pool], given.Prefix.Addr())
	}
	for _, addrs := range have {
		slices.SortFunc(addrs, netip.Addr.Compare)
	}
	if !c.wanted(pod.identity) {
		delete(c.pins, pod.identity)
		return
	}
	for pool, addrs := range have { // an address that its pool has no more, or not in every view, may be lost
		if slices.ContainsFunc(addrs, func(addr netip.Addr) bool { return !c.always[pool].Contains(addr) }) {
			delete(c.pins, pod.identity)
			return
		}
	}
	before, ok := c.pins[pod.identity]
	if ok {
		c.w.checkPins(pod, before, have)
		if c.homes[pod.identity] != r.m.uid {
			c.w.seen("pin moved to another node")
		}
	}
	c.homes[pod.identity] = r.m.uid
	c.pins[pod.identity] = have
}

func (c *cluster) wanted(identity string) bool {
	for _, s := range c.sets {
		for i := range s.replicas {
			if s.identity(i) == identity {
				return true
			}
		}
	}
	return slices.ContainsFunc(c.vms, func(v *vm) bool { return "VirtualMachine/ns/"+v.name == identity })
}
