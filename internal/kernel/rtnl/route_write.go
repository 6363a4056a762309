package rtnl

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// RouteAdd makes a route. If there is one with its Dst, TOS, Priority and Table,
// the error is fs.ErrExist, or with Replace that one ends as this one begins. With
// Append it comes behind those, of IPv6 as one of their next hops, and only one
// that is the same is in its way.
//
// By default Table is 254 (main), Type "unicast" and Protocol "boot"; Scope, of
// IPv4, "host" for type "local", "link" for one without gateways and for types
// "broadcast", "multicast" and "anycast", and "global" for all others. Dead and
// LinkDown are the kernel's to set, and not looked at.
type RouteAdd struct {
	Route
	Replace bool
	Append  bool
}

// RouteDelete removes a route: the first of those in the Table, 254 (main) by
// default, that are as the fields say that are not zero. Without one, the error
// is fs.ErrNotExist.
type RouteDelete struct{ Route }

func (r RouteAdd) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	route := r.Route
	if route.Type == "" {
		route.Type = routeTypes[unix.RTN_UNICAST]
	}
	if route.Protocol == "" {
		route.Protocol = routeProtocols[unix.RTPROT_BOOT]
	}
	if route.Scope == "" {
		route.Scope = route.defaultScope()
	}
	route.body(e)
	switch {
	case r.Replace:
		return unix.RTM_NEWROUTE, netlink.Create | netlink.Replace
	case r.Append:
		return unix.RTM_NEWROUTE, netlink.Create | netlink.Append
	}
	return unix.RTM_NEWROUTE, netlink.Create | netlink.Excl
}

func (r RouteDelete) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	route := r.Route
	if route.Type == "" {
		route.Type = routeTypes[unix.RTN_UNSPEC] // any
	}
	if route.Protocol == "" {
		route.Protocol = routeProtocols[unix.RTPROT_UNSPEC] // any
	}
	if route.Scope == "" {
		route.Scope = scopes[unix.RT_SCOPE_NOWHERE] // any
	}
	route.body(e)
	return unix.RTM_DELROUTE, 0
}

func (r RouteAdd) describe() string {
	switch {
	case r.Replace:
		return "replace " + r.words()
	case r.Append:
		return "append " + r.words()
	}
	return "add " + r.words()
}

func (r RouteDelete) describe() string { return "delete " + r.words() }

// words describes a route.
func (r Route) words() string {
	s := "route " + r.Dst.String()
	if r.Type != "" && r.Type != routeTypes[unix.RTN_UNICAST] {
		s = r.Type + " " + s
	}
	if r.Gateway.IsValid() {
		s += fmt.Sprintf(" via %v", r.Gateway)
	}
	if r.LinkIndex != 0 {
		s += fmt.Sprintf(" on link %d", r.LinkIndex)
	}
	return s + fmt.Sprintf(" in table %d", r.table())
}

func (r Route) table() int {
	if r.Table == 0 {
		return unix.RT_TABLE_MAIN
	}
	return r.Table
}

// defaultScope is that of iproute2.
func (r Route) defaultScope() string {
	scope := uint32(unix.RT_SCOPE_UNIVERSE)
	if familyOf(r.Dst.Addr()) != unix.AF_INET {
		return scopes[scope]
	}
	switch r.Type {
	case routeTypes[unix.RTN_LOCAL], routeTypes[unix.RTN_NAT]:
		scope = unix.RT_SCOPE_HOST
	case routeTypes[unix.RTN_BROADCAST], routeTypes[unix.RTN_MULTICAST], routeTypes[unix.RTN_ANYCAST]:
		scope = unix.RT_SCOPE_LINK
	case routeTypes[unix.RTN_UNICAST], routeTypes[unix.RTN_UNSPEC]:
		if !r.Gateway.IsValid() && len(r.NextHops) == 0 && r.NextHopID == 0 {
			scope = unix.RT_SCOPE_LINK
		}
	}
	return scopes[scope]
}

// body appends a struct rtmsg and attributes.
func (r Route) body(e *encoder) {
	var flags uint32
	if r.OnLink {
		flags = unix.RTNH_F_ONLINK
	}
	family := familyOf(r.Dst.Addr())
	e.b = append(e.b, family, byte(r.Dst.Bits()), byte(max(r.From.Bits(), 0)), byte(e.fit("TOS", r.TOS, math.MaxUint8)))
	e.b = append(e.b, tableByte(r.table()), byte(e.named("protocol", routeProtocols, r.Protocol, math.MaxUint8)))
	e.b = append(e.b, byte(e.named("scope", scopes, r.Scope, math.MaxUint8)), byte(e.named("type", routeTypes, r.Type, math.MaxUint8)))
	e.word(flags)
	e.table(unix.RTA_TABLE, r.table())
	r.selector(e, family)
	r.way(e, family)
	if r.MTU != 0 {
		e.nest(unix.RTA_METRICS, func(e *encoder) { e.number(unix.RTAX_MTU, "MTU", r.MTU) })
	}
	if r.Preference != "" {
		e.uint8(unix.RTA_PREF, uint8(e.named("preference", routePreferences, r.Preference, math.MaxUint8)))
	}
}

// selector appends what a route is for.
func (r Route) selector(e *encoder, family byte) {
	switch {
	case !r.Dst.IsValid():
		e.failf("destination: want a prefix; 0.0.0.0/0 or ::/0 for a default route")
	case r.Dst.Bits() != 0 || !r.Dst.Addr().IsUnspecified():
		e.prefix(unix.RTA_DST, "destination", family, r.Dst)
	}
	if r.From.IsValid() {
		e.prefix(unix.RTA_SRC, "source", family, r.From)
	}
	e.number(unix.RTA_PRIORITY, "priority", r.Priority)
}

// way appends where packets of a route go.
func (r Route) way(e *encoder, family byte) {
	if r.Src.IsValid() {
		e.addr(unix.RTA_PREFSRC, "source address", family, r.Src)
	}
	if r.Gateway.IsValid() {
		e.gateway(family, r.Gateway)
	}
	e.number(unix.RTA_OIF, "link", r.LinkIndex)
	if len(r.NextHops) > 0 {
		e.nest(unix.RTA_MULTIPATH, func(e *encoder) {
			for i, hop := range r.NextHops {
				e.nextHop(i, family, hop)
			}
		})
	}
	e.number(rtaNextHopID, "next hop object", r.NextHopID)
}

// nextHop appends a struct rtnexthop with attributes of its own.
func (e *encoder) nextHop(i int, family byte, hop NextHop) {
	const most = 256
	if hop.Weight < 1 || hop.Weight > most {
		e.failf("next hop %d: weight %d: want 1 to %d", i, hop.Weight, most)
	}
	var flags byte
	if hop.OnLink {
		flags = unix.RTNH_F_ONLINK
	}
	start := len(e.b)
	e.b = append(e.b, 0, 0, flags, byte(hop.Weight-1))
	e.word(e.fit(fmt.Sprintf("next hop %d: link", i), hop.LinkIndex, math.MaxInt32))
	if hop.Gateway.IsValid() {
		e.gateway(family, hop.Gateway)
	}
	binary.NativeEndian.PutUint16(e.b[start:], uint16(len(e.b)-start))
}

// gateway appends a gateway, which may be of another family than the route.
func (e *encoder) gateway(family byte, ip netip.Addr) {
	if familyOf(ip) == family {
		e.addr(unix.RTA_GATEWAY, "gateway", family, ip)
		return
	}
	e.checkAddr("gateway", 0, ip)
	via := binary.NativeEndian.AppendUint16(nil, uint16(familyOf(ip)))
	e.bytes(unix.RTA_VIA, append(via, ip.AsSlice()...))
}

// tableByte is a table in a header that has one byte for it.
func tableByte(table int) byte {
	if table > math.MaxUint8 {
		return unix.RT_TABLE_UNSPEC
	}
	return byte(table)
}

// table appends a table that has no room in the header.
func (e *encoder) table(typ uint16, table int) {
	if v := e.fit("table", table, math.MaxUint32); v > math.MaxUint8 {
		e.uint32(typ, v)
	}
}
