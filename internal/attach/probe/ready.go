package probe

import (
	"fmt"
	"net/netip"
	"time"

	"railhead/internal/kernel/rtnl"
)

// patience is how long an interface may take until it can be asked by. The
// kernel checks a link-local address for two seconds (RFC 4862 5.4), and a
// port of a NIC that was just given to the pod trains its link for as long.
const patience = 5 * time.Second

// readiness is whether an interface can be asked by. Without a carrier all that
// is sent is dropped in silence; a gateway of IPv6 is asked from the link-local
// address, which nobody may use before it is checked.
type readiness struct {
	known     bool // there is such a link
	hindrance string
	linkLocal bool
	ipvlan    bool
}

// begin asks by all interfaces that are ready, and waits for the others.
func (s *session) begin() {
	ipv6 := false
	s.checks(func(c *check) {
		c.waits, c.due = true, s.start.Add(s.patience)
		s.ready[c.target.Index] = &readiness{}
		ipv6 = ipv6 || c.needsLinkLocal()
	})
	s.lookLinks()
	if ipv6 {
		s.lookAddresses()
	}
	s.hearParents()
	s.release()
}

// release begins the checks whose interfaces are ready. What there is no link
// for is begun too: whoever asks is told so.
func (s *session) release() {
	now := time.Now()
	s.checks(func(c *check) {
		if c.waits && !c.decided && s.hindrance(c) == "" {
			c.waits, c.begun, c.due = false, now, now
		}
	})
}

// hindrance returns why a check cannot begin, "" if it can.
func (s *session) hindrance(c *check) string {
	r := s.ready[c.target.Index]
	switch {
	case !r.known:
		return ""
	case r.hindrance != "":
		return r.hindrance
	case c.needsLinkLocal() && !r.linkLocal:
		return "the interface has no link-local address that is checked (IPv6 off, or duplicate address detection not over)"
	}
	return ""
}

// needsLinkLocal reports whether the kernel asks from the link-local address.
func (c *check) needsLinkLocal() bool {
	return c.result.Kind == KindGateway && c.result.Address.Is6()
}

// expire ends a check that could not begin.
func (s *session) expire(c *check) {
	what := "gateway %v was not asked for"
	if c.result.Kind == KindConflict {
		what = "address %v was not checked for conflicts"
	}
	s.decide(c, fmt.Errorf("%s: "+what+" within %v: %s", c.target.where(), c.result.Address, waited(time.Since(s.start)), s.hindrance(c)))
}

// lookLinks takes in all links. Those that cannot be read count as ready.
func (s *session) lookLinks() {
	links, _ := s.client.Links()
	for _, l := range links {
		s.link(l)
	}
}

// lookAddresses takes in all addresses. Those that cannot be read may come in
// an event.
func (s *session) lookAddresses() {
	addresses, _ := s.client.Addresses()
	for _, a := range addresses {
		s.address(a)
	}
}

// link takes in the state of a link. The state of operation is set, in the
// background, as the kernel begins to send what it is given; "unknown" is that
// of links that have always had a carrier.
func (s *session) link(l rtnl.Link) {
	r := s.ready[l.Index]
	if r == nil {
		return
	}
	r.known, r.hindrance, r.ipvlan = true, "", l.Kind == "ipvlan"
	switch {
	case !l.Up:
		r.hindrance = "the interface is down"
	case !l.Running, l.OperState != "up" && l.OperState != "unknown":
		r.hindrance = "the interface has no carrier"
	}
}

// address takes in an address of a link.
func (s *session) address(a rtnl.Address) {
	if r := s.ready[a.LinkIndex]; r != nil && isLinkLocal6(a.Prefix.Addr()) && !a.Tentative && !a.DADFailed {
		r.linkLocal = true
	}
}

func isLinkLocal6(a netip.Addr) bool { return a.Is6() && a.IsLinkLocalUnicast() }
