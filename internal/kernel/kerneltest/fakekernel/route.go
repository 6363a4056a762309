package fakekernel

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rtnl"
)

// route is the protocol of NETLINK_ROUTE.
func (k *Kernel) route(m netlink.Message) (question, func() answer) {
	switch {
	case m.Header.Type == unix.RTM_GETLINK && len(m.Data) >= unix.SizeofIfInfomsg:
		index := int(int32(binary.NativeEndian.Uint32(m.Data[4:])))
		return question{request: GetLink, object: index, about: index != 0}, func() answer { return k.links(index) }
	case m.Header.Type == unix.RTM_GETADDR && len(m.Data) > 0:
		return question{request: GetAddress}, func() answer { return k.addresses(m.Data[0]) }
	}
	return unsupported()
}

func unsupported() (question, func() answer) {
	return question{request: anyOtherThing}, func() answer { return answer{errno: unix.EOPNOTSUPP} }
}

// links describes the link with an index, or all links for 0.
func (k *Kernel) links(index int) answer {
	a := answer{typ: unix.RTM_NEWLINK}
	for _, l := range k.facts.Links {
		if index == 0 || index == l.Index {
			a.add(l.Index, linkMessage(l))
		}
	}
	if index != 0 && len(a.bodies) == 0 {
		return answer{errno: unix.ENODEV}
	}
	return a
}

// addresses describes the addresses of a family, or all for AF_UNSPEC.
func (k *Kernel) addresses(family byte) answer {
	a := answer{typ: unix.RTM_NEWADDR}
	for _, address := range k.facts.Addresses {
		if family == unix.AF_UNSPEC || family == familyOf(address.Prefix.Addr()) {
			a.add(address.LinkIndex, addressMessage(address))
		}
	}
	return a
}

// linkMessage is the body of an RTM_NEWLINK.
func linkMessage(l rtnl.Link) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint16(b[2:], uint16(l.Type))
	putUint32(b[4:], uint32(int32(l.Index)))
	var flags uint32
	if l.Up {
		flags |= unix.IFF_UP
	}
	if l.Running {
		flags |= unix.IFF_LOWER_UP
	}
	putUint32(b[8:], flags)
	return slices.Concat(b, encode(func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_IFNAME, l.Name)
		ae.Uint32(unix.IFLA_MTU, uint32(l.MTU))
		ae.Uint32(unix.IFLA_MIN_MTU, uint32(l.MinMTU))
		ae.Uint32(unix.IFLA_MAX_MTU, uint32(l.MaxMTU))
		ae.Uint32(unix.IFLA_TXQLEN, uint32(l.TxQueueLen))
		if l.OperState != "" {
			ae.Uint8(unix.IFLA_OPERSTATE, uint8(numberOf(operStates, l.OperState)))
		}
		putBytes(ae, unix.IFLA_ADDRESS, strings.ReplaceAll(l.Address, ":", ""))
		putBytes(ae, unix.IFLA_PERM_ADDRESS, strings.ReplaceAll(l.PermAddress, ":", ""))
		putString(ae, unix.IFLA_IFALIAS, l.Alias)
		putRelations(ae, l)
		putAltNames(ae, l.AltNames)
		putLinkInfo(ae, l)
	}))
}

// putRelations encodes what ties a link to others and to its device.
func putRelations(ae *netlink.AttributeEncoder, l rtnl.Link) {
	if l.ParentIndex != 0 {
		ae.Uint32(unix.IFLA_LINK, uint32(int32(l.ParentIndex)))
	}
	if l.ParentNetNS != nil {
		ae.Uint32(unix.IFLA_LINK_NETNSID, uint32(int32(*l.ParentNetNS)))
	}
	if l.MasterIndex != 0 {
		ae.Uint32(unix.IFLA_MASTER, uint32(int32(l.MasterIndex)))
	}
	putString(ae, unix.IFLA_PARENT_DEV_BUS_NAME, l.ParentBus)
	putString(ae, unix.IFLA_PARENT_DEV_NAME, l.ParentDev)
	putString(ae, unix.IFLA_PHYS_PORT_NAME, l.PhysPortName)
	putBytes(ae, unix.IFLA_PHYS_SWITCH_ID, l.PhysSwitchID)
}

func putAltNames(ae *netlink.AttributeEncoder, names []string) {
	if len(names) == 0 {
		return
	}
	ae.Nested(unix.IFLA_PROP_LIST, func(ae *netlink.AttributeEncoder) error {
		for _, name := range names {
			ae.String(unix.IFLA_ALT_IFNAME, name)
		}
		return nil
	})
}

// putLinkInfo encodes the kind of a link, and the first attribute of the kind's
// data, which is all that rtnl.Link has of it.
func putLinkInfo(ae *netlink.AttributeEncoder, l rtnl.Link) {
	if l.Kind == "" {
		return
	}
	const first = 1 // IFLA_BOND_MODE, IFLA_VLAN_ID, IFLA_MACVLAN_MODE, IFLA_IPVLAN_MODE
	ae.Nested(unix.IFLA_LINKINFO, func(ae *netlink.AttributeEncoder) error {
		ae.String(unix.IFLA_INFO_KIND, l.Kind)
		ae.Nested(unix.IFLA_INFO_DATA, func(ae *netlink.AttributeEncoder) error {
			switch l.Kind {
			case "bond":
				ae.Uint8(first, uint8(numberOf(bondModes, l.BondMode)))
			case "vlan":
				ae.Uint16(first, uint16(l.VLANID))
			case "macvlan", "macvtap":
				ae.Uint32(first, numberOf(macvlanModes, l.Mode))
			case "ipvlan", "ipvtap":
				ae.Uint16(first, uint16(numberOf(ipvlanModes, l.Mode)))
			}
			return nil
		})
		return nil
	})
}

// addressMessage is the body of an RTM_NEWADDR.
func addressMessage(a rtnl.Address) []byte {
	var flags uint32
	for flag, set := range map[uint32]bool{
		unix.IFA_F_TENTATIVE: a.Tentative, unix.IFA_F_DADFAILED: a.DADFailed, unix.IFA_F_DEPRECATED: a.Deprecated,
	} {
		if set {
			flags |= flag
		}
	}
	subnet := a.Prefix
	if a.Peer.IsValid() {
		subnet = a.Peer
	}
	b := make([]byte, unix.SizeofIfAddrmsg)
	b[0], b[1], b[3] = familyOf(a.Prefix.Addr()), byte(subnet.Bits()), byte(numberOf(scopes, a.Scope))
	putUint32(b[4:], uint32(int32(a.LinkIndex)))
	return slices.Concat(b, encode(func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFA_ADDRESS, subnet.Addr().AsSlice())
		if a.Prefix.Addr().Is4() || a.Peer.IsValid() {
			ae.Bytes(unix.IFA_LOCAL, a.Prefix.Addr().AsSlice())
		}
		putString(ae, unix.IFA_LABEL, a.Label)
		ae.Uint32(unix.IFA_FLAGS, flags)
	}))
}

func familyOf(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func putString(ae *netlink.AttributeEncoder, typ uint16, s string) {
	if s != "" {
		ae.String(typ, s)
	}
}

// putBytes encodes bytes that are given in hexadecimal.
func putBytes(ae *netlink.AttributeEncoder, typ uint16, digits string) {
	if b, err := hex.DecodeString(digits); err == nil && len(b) > 0 {
		ae.Bytes(typ, b)
	}
}
