package rtnl

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// LinkAdd makes a link, in one message with all that it is to have, so that
// nobody ever sees it half made. Where the name or the index is taken, the error
// is fs.ErrExist.
//
// Kernels before 6.14 also refuse it with fs.ErrExist where the client's own
// namespace has a link of that name, even if it is made in another; they do not
// where Index is set, and then look for the index instead.
type LinkAdd struct {
	Name   string // 1 to 15 bytes; no %, which would be a pattern to the kernel
	Kind   string // "macvlan", "ipvlan", "vlan", "bond", "veth", "dummy" or "bridge"
	Parent int    // index of the link below, in the client's namespace: of macvlan, ipvlan and vlan

	// NetNS is a file descriptor of the network namespace that it is made in, 0
	// for the client's.
	NetNS int

	// Index is what later requests of the same batch can call the link by; 0 leaves
	// it to the kernel. If it is taken there the error is fs.ErrExist too, or EBUSY.
	Index int

	MAC        net.HardwareAddr // nil: random, or the parent's, as ipvlan and passthru always have it
	MTU        int              // 0: the parent's, or the kind's default
	TxQueueLen int              // 0: the kind's default
	Group      int              // what LinkDeleteGroup knows it by; 0 is that of all links without one
	Up         bool

	Mode        string            // of macvlan: "private", "vepa", "bridge", "passthru", "source"; of ipvlan: "l2", "l3", "l3s"
	VLANID      int               // of vlan: 1 to 4094
	BondMode    string            // of bond: "802.3ad" or "4", …; empty: "balance-rr"
	BondOptions map[string]string // of bond: "miimon": "100", "xmit_hash_policy": "layer3+4", … by the names of the kernel's documentation; links by index
	Peer        VethPeer          // of veth
}

// VethPeer is the other end of a veth pair. It is down: the kernel cannot make
// both ends up in one message.
type VethPeer struct {
	Name  string
	NetNS int // file descriptor of the network namespace that it is made in, 0 for the client's
	Index int // 0: any; only where the LinkAdd has an Index too
	MAC   net.HardwareAddr
	MTU   int
	Group int
}

// LinkSet changes what is set in it of a link, and leaves the rest. The kernel
// goes by the order of the fields and stops at what it refuses: what comes before
// that is done. Older kernels set a link up before they give it a master, and a
// bond takes none that is up: that needs two requests.
type LinkSet struct {
	Index int // of the link, in the client's namespace

	NetNS int              // file descriptor of the network namespace to move it to: there it is down, unless Up says otherwise
	MAC   net.HardwareAddr // of some kinds of link only while it is down
	MTU   int
	Group *int
	Name  string // kernels before 6.2 rename no link that is up

	Master     *int // bond or bridge that it is put into; 0 takes it out
	Up         *bool
	TxQueueLen *int
}

// LinkDelete removes a link, and of a veth pair both. Without one, the error is
// fs.ErrNotExist.
type LinkDelete struct {
	Index int
	Name  string // in place of Index
}

// LinkDeleteGroup removes all links of a group, at the cost of one: what takes
// long, the kernel does for all together. If there are none, the error is
// fs.ErrNotExist; if one of them is hardware, ErrNotSupported, and none is
// removed.
type LinkDeleteGroup struct {
	Group int // not 0, which is that of all links without one
}

// Kinds of links that Do can make.
const (
	macvlan = "macvlan"
	ipvlan  = "ipvlan"
	vlan    = "vlan"
	bond    = "bond"
	veth    = "veth"

	passthru = "passthru" // a mode of macvlan
)

// vethInfoPeer is VETH_INFO_PEER.
const vethInfoPeer = 1

// maxVLANID is the highest VLAN: 0 is none, and 4095 is reserved.
const maxVLANID = 4094

func (l LinkAdd) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	l.check(e)
	var flags uint32
	if l.Up {
		flags = unix.IFF_UP
	}
	e.link(int(e.fit("index", l.Index, math.MaxInt32)), flags, flags)
	e.linkName(unix.IFLA_IFNAME, "name", l.Name)
	e.number(unix.IFLA_LINK, "parent", l.Parent)
	e.number(unix.IFLA_NET_NS_FD, "network namespace", l.NetNS)
	e.settings(l.MAC, l.MTU, l.Group)
	e.number(unix.IFLA_TXQLEN, "transmit queue length", l.TxQueueLen)
	e.nest(unix.IFLA_LINKINFO, func(e *encoder) {
		e.text(unix.IFLA_INFO_KIND, l.Kind)
		switch l.Kind {
		case macvlan, ipvlan, vlan, bond, veth:
			e.nest(unix.IFLA_INFO_DATA, l.data)
		}
	})
	return unix.RTM_NEWLINK, netlink.Create | netlink.Excl
}

// check finds fields that do not go with the kind. What a kind needs, data
// finds out.
func (l LinkAdd) check(e *encoder) {
	kinds := []string{macvlan, ipvlan, vlan, bond, veth, "dummy", "bridge"}
	if !slices.Contains(kinds, l.Kind) {
		e.failf("kind %q: want one of %s", l.Kind, strings.Join(kinds, ", "))
	}
	onTop := l.Kind == macvlan || l.Kind == ipvlan || l.Kind == vlan
	if onTop {
		e.index("parent", l.Parent)
	}
	for _, field := range []struct {
		name         string
		set, belongs bool
	}{
		{"parent", l.Parent != 0, onTop},
		{"mode", l.Mode != "", l.Kind == macvlan || l.Kind == ipvlan},
		{"VLAN", l.VLANID != 0, l.Kind == vlan},
		{"bond mode", l.BondMode != "", l.Kind == bond},
		{"bond options", len(l.BondOptions) > 0, l.Kind == bond},
		{"peer", l.Peer.Name != "", l.Kind == veth},
		{"MAC", len(l.MAC) > 0, l.Kind != ipvlan}, // which has its parent's, and drops this in silence
	} {
		if field.set && !field.belongs {
			e.failf("%s: want none for kind %s", field.name, l.Kind)
		}
	}
}

// data appends the IFLA_INFO_DATA of a kind that has any.
func (l LinkAdd) data(e *encoder) {
	switch l.Kind {
	case macvlan:
		if l.Mode == passthru && len(l.MAC) > 0 {
			e.failf("MAC: want none for a macvlan of mode %s, which has its parent's", passthru)
		}
		e.uint32(unix.IFLA_MACVLAN_MODE, e.named("mode", macvlanModes, l.Mode, math.MaxUint32))
	case ipvlan:
		e.uint16(unix.IFLA_IPVLAN_MODE, uint16(e.named("mode", ipvlanModes, l.Mode, math.MaxUint16)))
	case vlan:
		if l.VLANID < 1 || l.VLANID > maxVLANID {
			e.failf("VLAN %d: want 1 to %d", l.VLANID, maxVLANID)
		}
		e.uint16(unix.IFLA_VLAN_ID, uint16(l.VLANID))
	case bond:
		e.bond(l.BondMode, l.BondOptions)
	case veth:
		peer := encoder{err: e.err}
		l.Peer.encode(&peer)
		e.err = peer.err
		e.bytes(vethInfoPeer, peer.b)
	}
}

func (p VethPeer) encode(e *encoder) {
	e.link(int(e.fit("index of the peer", p.Index, math.MaxInt32)), 0, 0)
	e.linkName(unix.IFLA_IFNAME, "name of the peer", p.Name)
	e.number(unix.IFLA_NET_NS_FD, "network namespace of the peer", p.NetNS)
	e.settings(p.MAC, p.MTU, p.Group)
}

// link appends a struct ifinfomsg.
func (e *encoder) link(index int, flags, change uint32) {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	binary.NativeEndian.PutUint32(b[12:], change)
	e.b = append(e.b, b...)
}

// settings appends what all kinds of links have, unless it is 0.
func (e *encoder) settings(mac net.HardwareAddr, mtu, group int) {
	if len(mac) > 0 {
		e.bytes(unix.IFLA_ADDRESS, mac)
	}
	e.number(unix.IFLA_MTU, "MTU", mtu)
	e.number(unix.IFLA_GROUP, "group", group)
}

func (l LinkAdd) describe() string {
	s := fmt.Sprintf("add %s %s", l.Kind, l.Name)
	if l.Parent != 0 {
		s += fmt.Sprintf(" on link %d", l.Parent)
	}
	s += elsewhere(l.NetNS)
	if l.Peer.Name != "" {
		s += ", peer " + l.Peer.Name + elsewhere(l.Peer.NetNS)
	}
	return s
}

// elsewhere says of a link where it is made or moved to.
func elsewhere(netns int) string {
	if netns == 0 {
		return ""
	}
	return " in another network namespace"
}

func (l LinkSet) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	var flags, changed uint32
	if l.Up != nil {
		changed = unix.IFF_UP
		if *l.Up {
			flags = unix.IFF_UP
		}
	}
	e.link(int(e.index("index", l.Index)), flags, changed)
	if l.Name != "" {
		e.linkName(unix.IFLA_IFNAME, "name", l.Name)
	}
	e.number(unix.IFLA_NET_NS_FD, "network namespace", l.NetNS)
	e.settings(l.MAC, l.MTU, 0)
	e.optional(unix.IFLA_GROUP, "group", l.Group)
	e.optional(unix.IFLA_MASTER, "master", l.Master)
	e.optional(unix.IFLA_TXQLEN, "transmit queue length", l.TxQueueLen)
	return unix.RTM_SETLINK, 0
}

func (l LinkSet) describe() string {
	s := fmt.Sprintf("set link %d", l.Index)
	if l.NetNS != 0 {
		s += " to another network namespace"
	}
	if len(l.MAC) > 0 {
		s += " MAC " + l.MAC.String()
	}
	if l.MTU != 0 {
		s += fmt.Sprintf(" MTU %d", l.MTU)
	}
	if l.Group != nil {
		s += fmt.Sprintf(" group %d", *l.Group)
	}
	if l.Name != "" {
		s += " name " + l.Name
	}
	if l.Master != nil {
		s += fmt.Sprintf(" master %d", *l.Master)
	}
	if l.Up != nil {
		s += map[bool]string{true: " up", false: " down"}[*l.Up]
	}
	if l.TxQueueLen != nil {
		s += fmt.Sprintf(" transmit queue length %d", *l.TxQueueLen)
	}
	return s
}

func (l LinkDelete) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	switch {
	case l.Name == "":
		e.link(int(e.index("index", l.Index)), 0, 0)
	case l.Index != 0:
		e.failf("index %d and name %q: want one of the two", l.Index, l.Name)
	default:
		e.link(0, 0, 0)
		e.linkName(unix.IFLA_IFNAME, "name", l.Name)
	}
	return unix.RTM_DELLINK, 0
}

func (l LinkDelete) describe() string {
	if l.Name != "" {
		return "delete link " + l.Name
	}
	return fmt.Sprintf("delete link %d", l.Index)
}

func (l LinkDeleteGroup) encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags) {
	if l.Group < 1 || l.Group > math.MaxUint32 {
		e.failf("group %d: want 1 to %d", l.Group, uint32(math.MaxUint32))
	}
	e.link(0, 0, 0)
	e.uint32(unix.IFLA_GROUP, uint32(l.Group))
	return unix.RTM_DELLINK, 0
}

func (l LinkDeleteGroup) describe() string { return fmt.Sprintf("delete links of group %d", l.Group) }
