package fakekernel

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rtnl"
)

// extVF is RTEXT_FILTER_VF of include/uapi/linux/rtnetlink.h: an RTM_GETLINK
// with it asks for VFs, for which a driver asks its firmware.
const extVF = 1 << 0

// route is the protocol of NETLINK_ROUTE.
func route(m netlink.Message) question {
	switch {
	case m.Header.Type == unix.RTM_GETLINK && len(m.Data) >= unix.SizeofIfInfomsg:
		index := int(int32(binary.NativeEndian.Uint32(m.Data[4:])))
		q := question{request: GetLink, kind: netLink, object: index, about: index != 0, answer: (*Kernel).links}
		attributes := m.Data[unix.SizeofIfInfomsg:]
		if q.flags, _ = number(attributes, unix.IFLA_EXT_MASK); q.flags&extVF != 0 {
			q.request = GetVFs
		}
		if q.name = text(attributes, unix.IFLA_IFNAME) + text(attributes, unix.IFLA_ALT_IFNAME); q.name != "" {
			q.locate = (*Kernel).linkNamed
		}
		return q
	case m.Header.Type == unix.RTM_GETADDR && len(m.Data) > 0:
		return question{request: GetAddress, kind: netLink, number: int(m.Data[0]), answer: (*Kernel).addresses}
	case m.Header.Type == unix.RTM_GETDCB && len(m.Data) >= rtnl.SizeofDCBMsg:
		return dcbQuestion(m)
	}
	return unsupported()
}

// links describes the link with an index or name, or all links.
func (k *Kernel) links(q question) answer {
	if q.name != "" && !q.about {
		return answer{errno: unix.ENODEV}
	}
	a := answer{typ: unix.RTM_NEWLINK}
	for _, l := range k.facts.Links {
		if q.about && q.object != l.Index {
			continue
		}
		if nic := k.facts.NICs[l.Index]; q.flags&extVF != 0 && nic != nil && len(nic.VFs) > 0 {
			b, errno := vfMessage(l, nic, q.flags)
			if errno != 0 {
				return answer{errno: errno}
			}
			a.addLive(l.Index, b)
			continue
		}
		a.add(l.Index, linkMessage(l))
	}
	if q.about && len(a.bodies) == 0 {
		return answer{errno: unix.ENODEV}
	}
	return a
}

// linkNamed returns the index of the link with the name that a question has, or
// with such an alternative name.
func (k *Kernel) linkNamed(q question) (index int, ok bool) {
	if k.named == nil {
		k.named = map[string]int{}
		for _, l := range k.facts.Links {
			k.named[l.Name] = l.Index
			for _, alternative := range l.AltNames {
				k.named[alternative] = l.Index
			}
		}
	}
	index, ok = k.named[q.name]
	return index, ok
}

// addresses describes the addresses of a family, or all for AF_UNSPEC.
func (k *Kernel) addresses(q question) answer {
	a := answer{typ: unix.RTM_NEWADDR}
	for _, address := range k.facts.Addresses {
		if family := familyOf(address.Prefix.Addr()); q.number == unix.AF_UNSPEC || q.number == int(family) {
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
		putEnum(ae, unix.IFLA_OPERSTATE, operStates, l.OperState)
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
	if l.Group != 0 {
		ae.Uint32(unix.IFLA_GROUP, uint32(l.Group))
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
	nest(ae, unix.IFLA_PROP_LIST, func(ae *netlink.AttributeEncoder) {
		for _, name := range names {
			ae.String(unix.IFLA_ALT_IFNAME, name)
		}
	})
}

// putLinkInfo encodes the kind of a link, and the first attribute of the kind's
// data, which is all that rtnl.Link has of it.
func putLinkInfo(ae *netlink.AttributeEncoder, l rtnl.Link) {
	if l.Kind == "" {
		return
	}
	const first = 1 // IFLA_BOND_MODE, IFLA_VLAN_ID, IFLA_MACVLAN_MODE, IFLA_IPVLAN_MODE
	nest(ae, unix.IFLA_LINKINFO, func(ae *netlink.AttributeEncoder) {
		ae.String(unix.IFLA_INFO_KIND, l.Kind)
		nest(ae, unix.IFLA_INFO_DATA, func(ae *netlink.AttributeEncoder) {
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
		})
	})
}

// addressMessage is the body of an RTM_NEWADDR.
func addressMessage(a rtnl.Address) []byte {
	var flags uint32
	for flag, set := range map[uint32]bool{
		unix.IFA_F_TENTATIVE: a.Tentative, unix.IFA_F_DADFAILED: a.DADFailed, unix.IFA_F_DEPRECATED: a.Deprecated,
		unix.IFA_F_NODAD: a.NoDAD, unix.IFA_F_NOPREFIXROUTE: a.NoPrefixRoute,
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
		if a.Broadcast.IsValid() {
			ae.Bytes(unix.IFA_BROADCAST, a.Broadcast.AsSlice())
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
