package rtnl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Route is a route as RTM_NEWROUTE describes it.
type Route struct {
	Table      int          `json:"table"`                // 254 main, 255 local
	Type       string       `json:"type"`                 // "unicast", "local", "blackhole", …
	Protocol   string       `json:"protocol"`             // who made it: "kernel", "static", "bird", …
	Scope      string       `json:"scope"`                // how far its destination is: "global", "link", "host"
	Dst        netip.Prefix `json:"dst"`                  // 0.0.0.0/0 or ::/0 for a default route
	From       netip.Prefix `json:"from,omitzero"`        // sources that it is for: IPv6 only
	Src        netip.Addr   `json:"src,omitzero"`         // RTA_PREFSRC: the address that packets without one are sent from
	Gateway    netip.Addr   `json:"gateway,omitzero"`     // may be IPv6 for an IPv4 destination
	LinkIndex  int          `json:"linkIndex,omitempty"`  // 0 where NextHops say, or for a route that goes nowhere
	Priority   int          `json:"priority,omitempty"`   // the metric of `ip route`: the lowest wins
	TOS        int          `json:"tos,omitempty"`        // type of service that it is for
	MTU        int          `json:"mtu,omitempty"`        // RTAX_MTU; 0: that of the link
	NextHops   []NextHop    `json:"nextHops,omitempty"`   // of a multipath route
	NextHopID  int          `json:"nextHopID,omitempty"`  // nexthop object that it uses
	Preference string       `json:"preference,omitempty"` // router preference "low", "medium", "high": IPv6 only
	OnLink     bool         `json:"onLink,omitempty"`     // the gateway is reachable whatever its address
	Dead       bool         `json:"dead,omitempty"`       // its link is down
	LinkDown   bool         `json:"linkDown,omitempty"`   // its link has no carrier
}

// NextHop is one way that a multipath route takes.
type NextHop struct {
	LinkIndex int        `json:"linkIndex"`
	Gateway   netip.Addr `json:"gateway,omitzero"`
	Weight    int        `json:"weight"` // share of the flows, 1 to 256
	OnLink    bool       `json:"onLink,omitempty"`
	Dead      bool       `json:"dead,omitempty"`
	LinkDown  bool       `json:"linkDown,omitempty"`
}

// rtaNextHopID is RTA_NH_ID.
const rtaNextHopID = 30

// Routes returns the IPv4 and IPv6 routes of all tables of the namespace, IPv4
// first, each family as the kernel orders it, without what it caches of them.
func (c *Client) Routes() ([]Route, error) {
	return dumpIP(c, "routes", unix.RTM_GETROUTE, unix.RTM_NEWROUTE, unix.SizeofRtMsg, parseRoute)
}

// isCloned reports whether a route message is about a copy that the kernel
// made of a route for one destination (a path MTU, a redirect).
func isCloned(b []byte) bool {
	return len(b) >= unix.SizeofRtMsg && binary.NativeEndian.Uint32(b[8:])&unix.RTM_F_CLONED != 0
}

// parseRoute decodes the body of an RTM_NEWROUTE or RTM_DELROUTE.
func parseRoute(b []byte) (Route, error) {
	if err := header(b, unix.SizeofRtMsg); err != nil {
		return Route{}, fmt.Errorf("route: %w", err)
	}
	flags := binary.NativeEndian.Uint32(b[8:])
	r := Route{
		TOS:      int(b[3]),
		Table:    int(b[4]),
		Protocol: name(routeProtocols, uint32(b[5])),
		Scope:    name(scopes, uint32(b[6])),
		Type:     name(routeTypes, uint32(b[7])),
		OnLink:   flags&unix.RTNH_F_ONLINK != 0,
		Dead:     flags&unix.RTNH_F_DEAD != 0,
		LinkDown: flags&unix.RTNH_F_LINKDOWN != 0,
	}
	var dst, from netip.Addr
	a := attributes{rest: b[unix.SizeofRtMsg:]}
	for a.next() {
		switch a.typ {
		case unix.RTA_DST:
			dst = a.addr()
		case unix.RTA_SRC:
			from = a.addr()
		default:
			r.attribute(&a)
		}
	}
	err := a.err
	if err == nil {
		err = r.prefixes(b, dst, from)
	}
	if err != nil {
		return Route{}, fmt.Errorf("route in table %d: %w", r.Table, err)
	}
	return r, nil
}

// prefixes sets what the route is for, with the lengths in the header.
func (r *Route) prefixes(b []byte, dst, from netip.Addr) (err error) {
	if r.Dst, err = prefix(b[0], dst, b[1]); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if !from.IsValid() && b[2] == 0 {
		return nil
	}
	if r.From, err = prefix(b[0], from, b[2]); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	return nil
}

func (r *Route) attribute(a *attributes) {
	switch a.typ {
	case unix.RTA_TABLE: // the header's byte has room for 0 to 255 only
		r.Table = int(a.uint32())
	case unix.RTA_PREFSRC:
		r.Src = a.addr()
	case unix.RTA_GATEWAY:
		r.Gateway = a.addr()
	case unix.RTA_VIA:
		r.Gateway = a.via()
	case unix.RTA_OIF:
		r.LinkIndex = a.int()
	case unix.RTA_PRIORITY:
		r.Priority = int(a.uint32())
	case unix.RTA_METRICS:
		a.fail(r.metrics(a.data))
	case unix.RTA_MULTIPATH:
		var err error
		r.NextHops, err = parseNextHops(a.data)
		a.fail(err)
	case rtaNextHopID:
		r.NextHopID = int(a.uint32())
	case unix.RTA_PREF:
		r.Preference = name(routePreferences, uint32(a.uint8()))
	}
}

// metrics decodes RTA_METRICS.
func (r *Route) metrics(b []byte) error {
	a := attributes{rest: b}
	for a.next() {
		if a.typ == unix.RTAX_MTU {
			r.MTU = int(a.uint32())
		}
	}
	return a.err
}

// via decodes struct rtvia, a gateway after its family.
func (a *attributes) via() netip.Addr {
	if len(a.data) < 2 {
		a.fail(fmt.Errorf("%d bytes, want a family and an address", len(a.data)))
		return netip.Addr{}
	}
	ip, ok := netip.AddrFromSlice(a.data[2:])
	if !ok {
		a.fail(fmt.Errorf("an address of %d bytes, want 4 or 16", len(a.data)-2))
	}
	return ip
}

// parseNextHops decodes RTA_MULTIPATH, a list of struct rtnexthop with
// attributes of their own.
func parseNextHops(b []byte) ([]NextHop, error) {
	var hops []NextHop
	for len(b) > 0 {
		if err := header(b, unix.SizeofRtNexthop); err != nil {
			return nil, fmt.Errorf("next hop %d: %w", len(hops), err)
		}
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtNexthop || n > len(b) {
			return nil, fmt.Errorf("next hop %d: length %d, want %d to %d", len(hops), n, unix.SizeofRtNexthop, len(b))
		}
		hop, err := parseNextHop(b[:n])
		if err != nil {
			return nil, fmt.Errorf("next hop %d: %w", len(hops), err)
		}
		hops = append(hops, hop)
		b = b[min(align4(n), len(b)):]
	}
	if hops == nil {
		return nil, errors.New("no next hops")
	}
	return hops, nil
}

func parseNextHop(b []byte) (NextHop, error) {
	hop := NextHop{
		LinkIndex: int(int32(binary.NativeEndian.Uint32(b[4:]))),
		Weight:    int(b[3]) + 1, // the kernel stores it less one
		OnLink:    b[2]&unix.RTNH_F_ONLINK != 0,
		Dead:      b[2]&unix.RTNH_F_DEAD != 0,
		LinkDown:  b[2]&unix.RTNH_F_LINKDOWN != 0,
	}
	a := attributes{rest: b[unix.SizeofRtNexthop:]}
	for a.next() {
		switch a.typ {
		case unix.RTA_GATEWAY:
			hop.Gateway = a.addr()
		case unix.RTA_VIA:
			hop.Gateway = a.via()
		}
	}
	return hop, a.err
}
