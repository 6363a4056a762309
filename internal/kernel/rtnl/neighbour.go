package rtnl

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Neighbour is an entry of the ARP or neighbour discovery table as
// RTM_NEWNEIGH describes it.
type Neighbour struct {
	LinkIndex int        `json:"linkIndex"`
	IP        netip.Addr `json:"ip"`
	Address   string     `json:"address,omitempty"` // link-layer address aa:bb:…; empty while it is not known
	State     string     `json:"state"`             // "reachable", "stale", "failed", "permanent", …
	Flags     []string   `json:"flags,omitempty"`   // "router", "proxy", "extern_learn", "managed", …
}

// ndaFlagsExt is NDA_FLAGS_EXT, and extShift where its flags begin in names.
const (
	ndaFlagsExt = 15
	extShift    = 8
)

// Neighbours returns the IPv4 and IPv6 neighbours of the namespace's links,
// IPv4 first, without the addresses that the host answers for as a proxy.
func (c *Client) Neighbours() ([]Neighbour, error) {
	return dumpIP(c, "neighbours", unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, unix.SizeofNdMsg, parseNeighbour)
}

// parseNeighbour decodes the body of an RTM_NEWNEIGH or RTM_DELNEIGH.
func parseNeighbour(b []byte) (Neighbour, error) {
	if err := header(b, unix.SizeofNdMsg); err != nil {
		return Neighbour{}, fmt.Errorf("neighbour: %w", err)
	}
	n := Neighbour{
		LinkIndex: int(int32(binary.NativeEndian.Uint32(b[4:]))),
		State:     name(neighbourStates, uint32(binary.NativeEndian.Uint16(b[8:]))),
	}
	flags := uint32(b[10])
	a := attributes{rest: b[unix.SizeofNdMsg:]}
	for a.next() {
		switch a.typ {
		case unix.NDA_DST:
			n.IP = a.addr()
		case unix.NDA_LLADDR:
			n.Address = a.link()
		case ndaFlagsExt:
			flags |= a.uint32() << extShift
		}
	}
	n.Flags = flagNames(neighbourFlags, flags)
	err := a.err
	if err == nil {
		err = checkFamily(b[0], n.IP)
	}
	if err != nil {
		return Neighbour{}, fmt.Errorf("neighbour of link %d: %w", n.LinkIndex, err)
	}
	return n, nil
}
