package rtnl

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// NeighbourSet makes an entry of the neighbour table, or changes that which is
// there. State is by default "permanent", or "none" where there is no Address.
type NeighbourSet struct {
	Neighbour

	// Use has the kernel find out the neighbour's address, as if there were a
	// packet to be sent: soon the entry, which needs no Address and no State, is
	// "reachable" or "failed". One that is there already keeps its address.
	Use bool
}

// NeighbourDelete removes an entry: its address, if any, is forgotten. Without an
// entry, the error is fs.ErrNotExist.
type NeighbourDelete struct{ Neighbour }

func (n NeighbourSet) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	flags, err := flagBits(neighbourFlags, n.Flags)
	if err != nil {
		e.failf("flags: %w", err)
	}
	if n.Use {
		flags |= unix.NTF_USE
	}
	state := n.State
	switch {
	case state != "":
	case n.Address != "":
		state = neighbourStates[unix.NUD_PERMANENT]
	default:
		state = neighbourStates[unix.NUD_NONE]
	}
	n.body(e, state, byte(flags))
	e.hardware(unix.NDA_LLADDR, "link-layer address", n.Address)
	if flags>>extShift != 0 {
		e.uint32(ndaFlagsExt, flags>>extShift)
	}
	return unix.RTM_NEWNEIGH, netlink.Create | netlink.Replace
}

func (n NeighbourDelete) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	n.body(e, neighbourStates[unix.NUD_NONE], 0)
	return unix.RTM_DELNEIGH, 0
}

// body appends a struct ndmsg and the address.
func (n Neighbour) body(e *encoder, state string, flags byte) {
	e.b = append(e.b, familyOf(n.IP), 0, 0, 0)
	e.word(e.index("link", n.LinkIndex))
	e.b = binary.NativeEndian.AppendUint16(e.b, uint16(e.named("state", neighbourStates, state, math.MaxUint16)))
	e.b = append(e.b, flags, 0)
	e.addr(unix.NDA_DST, "address", 0, n.IP)
}

func (n NeighbourSet) describe() string {
	if n.Use {
		return fmt.Sprintf("probe neighbour %v on link %d", n.IP, n.LinkIndex)
	}
	return fmt.Sprintf("set neighbour %v on link %d", n.IP, n.LinkIndex)
}

func (n NeighbourDelete) describe() string {
	return fmt.Sprintf("delete neighbour %v on link %d", n.IP, n.LinkIndex)
}
