package holder

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
)

// align picks the same host part in the first pools of all choices that are in
// a set, if some is free in all.
func (h *Holder) align(picks []pick, in func(*pick) bool) {
	rails := railsOf(picks, in)
	if len(rails) < 2 || h.pools[rails[0].ref.Name] == nil {
		return
	}
	best := uint64(math.MaxUint64)
	slots, found := make([]*slot, 0, len(rails)), make([]*slot, 0, len(rails))
	for _, s := range h.pools[rails[0].ref.Name].free {
		if s.rank() >= best {
			break // in order of rank, so no later one is better
		}
		var worst uint64
		if slots, worst = h.sameHost(slots[:0], rails, s); len(slots) == len(rails) && worst < best {
			best, slots, found = worst, found, slots
		}
		if best == 0 {
			break
		}
	}
	for i, s := range found {
		if !isPicked(picks, s) {
			rails[i].slot = s
		}
	}
}

// railsOf is the choices in a set that have no address yet and may have any, one
// a pool.
func railsOf(picks []pick, in func(*pick) bool) []*pick {
	var rails []*pick
	for i := range picks {
		p := &picks[i]
		if p.slot != nil || p.choice.Exact.IsValid() || p.ref.Name == "" || !in(p) ||
			slices.ContainsFunc(rails, func(o *pick) bool { return o.ref.Name == p.ref.Name }) {
			continue
		}
		if rails == nil {
			rails = make([]*pick, 0, len(picks)-i)
		}
		rails = append(rails, p)
	}
	return rails
}

// sameHost is the addresses with the host part of one, as far as they are
// free, and the worst of their ranks.
func (h *Holder) sameHost(slots []*slot, rails []*pick, first *slot) ([]*slot, uint64) {
	host, ok := hostPart(rails[0].ref.Subnet, first.addr)
	worst := first.rank()
	slots = append(slots, first)
	for _, p := range rails[1:] {
		of := h.pools[p.ref.Name]
		addr, fits := withHostPart(p.ref.Subnet, host)
		if !ok || !fits || of == nil || of.slots[addr] == nil {
			return slots, 0
		}
		s := of.slots[addr]
		if !s.idle() || s.identity != "" {
			return slots, 0
		}
		slots, worst = append(slots, s), max(worst, s.rank())
	}
	return slots, worst
}

// hostPart is how far an address is from the begin of its subnet. Not ok is
// what no rail has: an address outside of it, or further than 2^64.
func hostPart(subnet netip.Prefix, addr netip.Addr) (host uint64, ok bool) {
	if !subnet.Contains(addr) {
		return 0, false
	}
	if addr.Is4() {
		return v4(addr) - v4(subnet.Masked().Addr()), true
	}
	base, at := subnet.Masked().Addr().As16(), addr.As16()
	return binary.BigEndian.Uint64(at[8:]) - binary.BigEndian.Uint64(base[8:]),
		[8]byte(base[:8]) == [8]byte(at[:8])
}

// withHostPart is the address of a subnet with a host part.
func withHostPart(subnet netip.Prefix, host uint64) (addr netip.Addr, ok bool) {
	if !subnet.IsValid() {
		return netip.Addr{}, false
	}
	base := subnet.Masked().Addr()
	if base.Is4() {
		if host > math.MaxUint32-v4(base) {
			return netip.Addr{}, false
		}
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(v4(base)+host))
		addr = netip.AddrFrom4(b)
		return addr, subnet.Contains(addr)
	}
	b := base.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+host)
	addr = netip.AddrFrom16(b)
	return addr, subnet.Contains(addr)
}

func v4(addr netip.Addr) uint64 {
	b := addr.As4()
	return uint64(binary.BigEndian.Uint32(b[:]))
}
