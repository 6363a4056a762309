package overview

import (
	"cmp"
	"slices"
	"strings"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// place is a pool on a node, or on none.
type place struct{ pool, node string }

// nodesOf counts runs by pool and node, and adds what leases say of needs.
func nodesOf(runs []AddressRun, o *Objects, ledgers *ledgerBooks) []NodeAddresses {
	sums := map[place]*sum{}
	at := func(p place) *sum {
		if sums[p] == nil {
			sums[p] = &sum{}
		}
		return sums[p]
	}
	for i := range runs {
		at(place{runs[i].Pool, runs[i].Node}).add(&runs[i])
	}
	needs := needsOf(o, ledgers)
	for p, n := range needs {
		if !n.isNothing() {
			at(p)
		}
	}
	leased := map[string]bool{}
	for _, lease := range o.Leases {
		leased[lease.Name] = true
	}
	list := make([]NodeAddresses, 0, len(sums))
	for p, s := range sums {
		row := s.row(p, o, ledgers)
		if n, ok := needs[p]; ok {
			n.fill(&row)
		} else if leased[p.node] {
			(&need{short: new(int64)}).fill(&row)
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b NodeAddresses) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Node, b.Node))
	})
	return list
}

// sum is the addresses of a row. An address that two pods or two ledgers name is
// in two runs, and one address.
type sum struct{ held, used, reserve, pinned, quarantined []netipx.IPRange }

// add adds a run to the row of its pool and node.
func (s *sum) add(r *AddressRun) {
	addresses, err := ipam.ParseRange(r.Addresses)
	if err != nil { // it was formatted of one
		return
	}
	if r.Epoch != 0 && r.Node != "" {
		s.held = append(s.held, addresses)
	}
	if r.Identity != "" {
		s.pinned = append(s.pinned, addresses)
	}
	switch r.State {
	case StateUsed:
		s.used = append(s.used, addresses)
	case StateReserve:
		s.reserve = append(s.reserve, addresses)
	case StateQuarantined:
		s.quarantined = append(s.quarantined, addresses)
	case StatePinned, StateHeld:
	}
}

// row counts what is known.
func (s *sum) row(at place, o *Objects, ledgers *ledgerBooks) NodeAddresses {
	count := func(ranges []netipx.IPRange) *int64 { return new(ipam.CountList(ipam.Merged(ranges))) }
	n := NodeAddresses{Pool: at.pool, Node: at.node}
	if o.Endpoints != nil {
		n.Used = count(s.used)
	}
	if !ledgers.isWhole(at.pool) {
		return n
	}
	n.Held, n.Pinned, n.Quarantined = count(s.held), count(s.pinned), count(s.quarantined)
	if o.Endpoints != nil {
		n.Reserve = count(s.reserve)
	}
	return n
}
