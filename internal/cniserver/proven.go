package cniserver

import (
	"net/netip"
	"slices"

	"railhead/internal/attach/probe"
)

// grantedAddress is an address as this node was granted it.
type grantedAddress struct {
	pool  string
	addr  netip.Addr
	epoch int64
}

// provenMost bounds what is remembered of addresses: a node that had so many asks
// again.
const provenMost = 1 << 16

// isProven says whether an address was probed since the node was granted it. Nobody
// else is given it as long as the node has it, so that it is not asked for again,
// which would take the time of an answer that does not come; whoever takes it
// while a pod has it, is seen by the watcher.
func (s *Server) isProven(a *attempt, addr netip.Addr) bool {
	g, ok := a.given.granted(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && s.proven[g]
}

// prove remembers the addresses that were probed, and that nobody had.
func (s *Server) prove(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.proven) > provenMost {
		clear(s.proven)
	}
	for _, r := range a.report.Results {
		if g, ok := a.given.granted(r.Address); ok && r.Kind == probe.KindConflict && r.OK {
			s.proven[g] = true
		}
	}
}

// doubt forgets addresses that others were seen to have.
func (s *Server) doubt(addr netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g := range s.proven {
		if g.addr == addr {
			delete(s.proven, g)
		}
	}
}

// granted is an address of the pod as the node was granted it.
func (g *given) granted(addr netip.Addr) (grantedAddress, bool) {
	for _, a := range g.assignment.Addresses {
		if a.Prefix.Addr() == addr {
			return grantedAddress{pool: a.Pool, addr: addr, epoch: a.Epoch}, true
		}
	}
	return grantedAddress{}, false
}

// vouches says whether addresses of the pod were doubtful, and all of these were
// probed: those on interfaces of others' plugins are not.
func (a *attempt) vouches() bool {
	doubtful := false
	for _, one := range a.given.assignment.Addresses {
		if !one.Doubtful {
			continue
		}
		doubtful = true
		if !slices.ContainsFunc(a.report.Results, func(r probe.Result) bool {
			return r.Kind == probe.KindConflict && r.OK && r.Address == one.Prefix.Addr()
		}) {
			return false
		}
	}
	return doubtful
}
