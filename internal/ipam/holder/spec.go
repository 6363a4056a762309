package holder

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// spec is what the lease should say.
func (h *Holder) spec() v1alpha1.AddressLeaseSpec {
	waiting := h.waiting()
	return v1alpha1.AddressLeaseSpec{
		NodeUID: h.options.UID, BootID: h.options.BootID, Session: h.session,
		Wants: wantList(h.wants(waiting)), Groups: h.groups(), Exact: h.exact(waiting),
		Pins: h.pins(waiting), Returns: h.returns(false),
	}
}

// wants is how many addresses each pool needs that are not pinned: those that
// pods have, those that pods wait for, and the low mark. What is in use without
// a grant is asked for by exact alone.
func (h *Holder) wants(waiting []waited) map[string]int64 {
	wants := map[string]int64{}
	for name, p := range h.pools {
		n := p.low()
		for _, s := range p.slots {
			if s.granted() && s.identity == "" && !s.returning && (s.user != nil || s.stray) {
				n++
			}
		}
		wants[name] = n
	}
	for _, w := range waiting {
		switch {
		case w.choice.Exact.IsValid():
			if s := h.at(w.pool, w.choice.Exact); s != nil && s.idle() && s.identity == "" {
				wants[w.pool]++
			}
		case w.Identity == "":
			wants[w.pool]++
		}
	}
	return wants
}

// at is what is known of an address, nil if nothing is.
func (h *Holder) at(name string, addr netip.Addr) *slot {
	if p := h.pools[name]; p != nil {
		return p.slots[addr]
	}
	return nil
}

// exact is the addresses that the node needs and was not granted: pods have
// them (R10), or ask for them.
func (h *Holder) exact(waiting []waited) []v1alpha1.Exact {
	need := exactly{}
	for name, p := range h.pools {
		for addr, s := range p.slots {
			if s.user != nil && !s.granted() && !s.returning {
				need.add(name, addr)
			}
		}
	}
	for addr := range h.strays {
		if name := h.strayIn(addr); name != "" {
			need.add(name, addr)
		}
	}
	for _, w := range waiting {
		if s := h.at(w.pool, w.choice.Exact); w.choice.Exact.IsValid() && (s == nil || !s.granted() && !s.returning) {
			need.add(w.pool, w.choice.Exact)
		}
	}
	return need.list()
}

// exactly is addresses by pool.
type exactly map[string]*netipx.IPSetBuilder

func (e exactly) add(name string, addr netip.Addr) {
	if e[name] == nil {
		e[name] = &netipx.IPSetBuilder{}
	}
	e[name].Add(addr)
}

func (e exactly) list() []v1alpha1.Exact {
	var all []v1alpha1.Exact
	for _, name := range slices.Sorted(maps.Keys(e)) {
		all = append(all, v1alpha1.Exact{Pool: name, Addresses: formatted(e[name])})
	}
	return all
}

// strayIn is the pool to ask for a stray; empty: it is granted, being given
// back, or of no pool that is known.
func (h *Holder) strayIn(addr netip.Addr) string {
	for name := range h.pools {
		if s := h.at(name, addr); s != nil && (s.shown || s.returning || s.user != nil) {
			return ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.subnets)) {
		if h.subnets[name].Contains(addr) {
			return name
		}
	}
	return ""
}

// groups is the pools that pods here have addresses of together.
func (h *Holder) groups() []v1alpha1.Group {
	all := map[string]v1alpha1.Group{}
	add := func(pools []string) {
		slices.Sort(pools)
		if pools = slices.Compact(pools); len(pools) > 1 {
			all[strings.Join(pools, "\n")] = v1alpha1.Group{Pools: pools}
		}
	}
	for _, e := range h.pods {
		pools := make([]string, len(e.Addresses))
		for i := range e.Addresses {
			pools[i] = e.Addresses[i].Pool
		}
		add(pools)
	}
	for _, w := range h.waits {
		var pools []string
		for i, p := range w.picks() {
			if len(p.choice.Pools) > 0 {
				pools = append(pools, p.choice.pool(w.passed[i]))
			}
		}
		add(pools)
	}
	var groups []v1alpha1.Group
	for _, key := range slices.Sorted(maps.Keys(all)) {
		groups = append(groups, all[key])
	}
	return groups
}

// wantList is counts by pool, in order and without zeros.
func wantList(wants map[string]int64) []v1alpha1.Want {
	var all []v1alpha1.Want
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		if wants[name] > 0 {
			all = append(all, v1alpha1.Want{Pool: name, Addresses: wants[name]})
		}
	}
	return all
}

// formatted is the addresses of a set.
func formatted(build *netipx.IPSetBuilder) []string {
	set, err := build.IPSet()
	if err != nil { // of addresses that are none: nobody put any in
		return nil
	}
	return ipam.FormatRanges(set)
}

func compareReturns(a, b v1alpha1.Return) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Quarantine, b.Quarantine))
}
