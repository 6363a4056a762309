package rtnl

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Address is an IP address of a link as RTM_NEWADDR describes it.
type Address struct {
	LinkIndex     int          `json:"linkIndex"`
	Prefix        netip.Prefix `json:"prefix"`             // address with the length of its subnet: 172.16.11.2/24; of its own length where there is a peer
	Peer          netip.Prefix `json:"peer,omitzero"`      // of a point-to-point link, with the length of its subnet
	Broadcast     netip.Addr   `json:"broadcast,omitzero"` // IPv4 only; see SubnetBroadcast
	Label         string       `json:"label,omitempty"`
	Scope         string       `json:"scope,omitempty"`     // "global", "link", "host", …
	Tentative     bool         `json:"tentative,omitempty"` // duplicate address detection has not ended
	DADFailed     bool         `json:"dadFailed,omitempty"` // someone else has the address
	Deprecated    bool         `json:"deprecated,omitempty"`
	NoDAD         bool         `json:"noDAD,omitempty"`         // IPv6 only: usable at once, nobody is asked whether they have it
	NoPrefixRoute bool         `json:"noPrefixRoute,omitempty"` // it brought no route to its subnet
	Dynamic       bool         `json:"dynamic,omitempty"`       // it ends if nobody renews it, as a router's announcements do
}

// Addresses returns the IPv4 and IPv6 addresses of the namespace's links, IPv4
// first, each family as the kernel orders it.
func (c *Client) Addresses() ([]Address, error) {
	return dumpIP(c, "addresses", unix.RTM_GETADDR, unix.RTM_NEWADDR, unix.SizeofIfAddrmsg, parseAddress)
}

// parseAddress decodes the body of an RTM_NEWADDR or RTM_DELADDR.
func parseAddress(b []byte) (Address, error) {
	if err := header(b, unix.SizeofIfAddrmsg); err != nil {
		return Address{}, fmt.Errorf("address: %w", err)
	}
	m := addressMessage{flags: uint32(b[2])}
	a := attributes{rest: b[unix.SizeofIfAddrmsg:]}
	for a.next() {
		m.attribute(&a)
	}
	address := Address{
		LinkIndex:  int(int32(binary.NativeEndian.Uint32(b[4:]))),
		Label:      m.label,
		Scope:      name(scopes, uint32(b[3])),
		Tentative:  m.flags&unix.IFA_F_TENTATIVE != 0,
		DADFailed:  m.flags&unix.IFA_F_DADFAILED != 0,
		Deprecated: m.flags&unix.IFA_F_DEPRECATED != 0,
		Broadcast:  m.broadcast,

		NoDAD:         m.flags&unix.IFA_F_NODAD != 0,
		NoPrefixRoute: m.flags&unix.IFA_F_NOPREFIXROUTE != 0,
		Dynamic:       m.ends,
	}
	err := a.err
	if err == nil {
		address.Prefix, address.Peer, err = m.prefixes(b[0], b[1])
	}
	if err != nil {
		return Address{}, fmt.Errorf("address of link %d: %w", address.LinkIndex, err)
	}
	return address, nil
}

// addressMessage holds what cannot be told apart before all has been read.
type addressMessage struct {
	address, local, broadcast netip.Addr
	label                     string
	flags                     uint32
	ends                      bool
}

func (m *addressMessage) attribute(a *attributes) {
	switch a.typ {
	case unix.IFA_ADDRESS:
		m.address = a.addr()
	case unix.IFA_LOCAL:
		m.local = a.addr()
	case unix.IFA_BROADCAST:
		m.broadcast = a.addr()
	case unix.IFA_LABEL:
		m.label = a.string()
	case unix.IFA_CACHEINFO: // struct ifa_cacheinfo: seconds it is preferred, and valid
		m.ends = len(a.data) >= 8 && binary.NativeEndian.Uint32(a.data[4:]) != math.MaxUint32
	case unix.IFA_FLAGS: // the header's byte has room for the lowest eight only
		m.flags = a.uint32()
	}
}

// prefixes returns an address and its peer. IFA_ADDRESS is the address itself
// where IFA_LOCAL is missing (IPv6) or the same (IPv4); otherwise it is the
// peer, and the length in the header is that of the peer's subnet.
func (m *addressMessage) prefixes(family, bits byte) (own, peer netip.Prefix, err error) {
	if !m.local.IsValid() || m.local == m.address {
		own, err = addressPrefix(family, m.address, bits)
		return own, peer, err
	}
	if own, err = addressPrefix(family, m.local, byte(m.local.BitLen())); err != nil {
		return own, peer, err
	}
	if m.address.IsValid() {
		peer, err = addressPrefix(family, m.address, bits)
	}
	return own, peer, err
}

func addressPrefix(family byte, ip netip.Addr, bits byte) (netip.Prefix, error) {
	if err := checkFamily(family, ip); err != nil {
		return netip.Prefix{}, err
	}
	return prefix(family, ip, bits)
}
