package rtnl

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// AddressAdd gives a link an address. If it has it, the error is fs.ErrExist.
//
// Scope is by default "host" for 127.0.0.0/8 and "global" for all others.
// Without NoPrefixRoute the address brings a route to its subnet with it.
// Tentative, DADFailed and Dynamic are not looked at: it is for ever.
type AddressAdd struct{ Address }

// AddressDelete takes an address from a link: that with the Prefix, and the
// Label if there is one. Without it, the error is fs.ErrNotExist.
type AddressDelete struct{ Address }

// SubnetBroadcast returns the broadcast address of an IPv4 subnet, as `ip address
// add … brd +` computes it, and none for one of IPv6 or of less than four
// addresses. An address works without: hosts know that of their subnet anyway.
func SubnetBroadcast(prefix netip.Prefix) netip.Addr {
	const longest = 30
	if !prefix.IsValid() || !prefix.Addr().Is4() || prefix.Bits() > longest {
		return netip.Addr{}
	}
	ip := prefix.Addr().As4()
	for bit := prefix.Bits(); bit < prefix.Addr().BitLen(); bit++ {
		ip[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(ip)
}

func (a AddressAdd) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	a.body(e, a.scope())
	if a.Broadcast.IsValid() {
		if a.family() != unix.AF_INET {
			e.failf("broadcast %v: want none for IPv6", a.Broadcast)
		}
		e.addr(unix.IFA_BROADCAST, "broadcast", a.family(), a.Broadcast)
	}
	e.uint32(unix.IFA_FLAGS, a.flags())
	if a.Deprecated {
		// struct ifa_cacheinfo: preferred for no time, valid for ever
		e.bytes(unix.IFA_CACHEINFO, append([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, make([]byte, 8)...))
	}
	return unix.RTM_NEWADDR, netlink.Create | netlink.Excl
}

func (a AddressDelete) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	a.body(e, a.scope())
	return unix.RTM_DELADDR, 0
}

func (a AddressAdd) describe() string {
	return fmt.Sprintf("add address %v to link %d", a.Prefix, a.LinkIndex)
}

func (a AddressDelete) describe() string {
	return fmt.Sprintf("delete address %v from link %d", a.Prefix, a.LinkIndex)
}

func (a Address) family() byte { return familyOf(a.Prefix.Addr()) }

// body appends a struct ifaddrmsg and what identifies an address.
func (a Address) body(e *encoder, scope string) {
	bits := a.Prefix.Bits()
	peer := a.Prefix.Addr()
	if a.Peer != (netip.Prefix{}) {
		bits, peer = a.Peer.Bits(), a.Peer.Addr()
		switch {
		case !a.Peer.IsValid():
			e.failf("peer %v: want a prefix", a.Peer)
		case !a.Prefix.IsSingleIP():
			e.failf("address %v with a peer: want it of its own length, the subnet's goes with the peer", a.Prefix)
		case peer == a.Prefix.Addr():
			e.failf("peer %v: want another than the address itself", a.Peer)
		}
	}
	number := e.named("scope", scopes, scope, math.MaxUint8)
	e.b = append(e.b, a.family(), byte(bits), byte(a.flags()), byte(number))
	e.word(e.index("link", a.LinkIndex))
	e.addr(unix.IFA_LOCAL, "address", a.family(), a.Prefix.Addr())
	e.addr(unix.IFA_ADDRESS, "peer", a.family(), peer)
	a.label(e)
}

// label appends IFA_LABEL. `ip` and the kernel call an address without one as its
// link is called.
func (a Address) label(e *encoder) {
	switch {
	case a.Label == "":
		return
	case a.family() != unix.AF_INET:
		e.failf("label %q: want none for IPv6", a.Label)
	case len(a.Label) > maxName || containsNUL(a.Label):
		e.failf("label %q: want 1 to %d bytes", a.Label, maxName)
	}
	e.text(unix.IFA_LABEL, a.Label)
}

func (a Address) scope() string {
	switch {
	case a.Scope != "":
		return a.Scope
	case a.family() == unix.AF_INET && a.Prefix.Addr().IsLoopback():
		return scopes[unix.RT_SCOPE_HOST]
	}
	return scopes[unix.RT_SCOPE_UNIVERSE]
}

func (a Address) flags() uint32 {
	var flags uint32
	if a.NoDAD {
		flags |= unix.IFA_F_NODAD
	}
	if a.NoPrefixRoute {
		flags |= unix.IFA_F_NOPREFIXROUTE
	}
	if a.Deprecated {
		flags |= unix.IFA_F_DEPRECATED
	}
	return flags
}
