package fakekernel

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// rdma is the protocol of NETLINK_RDMA, of its client nldev.
func (k *Kernel) rdma(m netlink.Message) (question, func() answer) {
	command, ok := rdmanl.CommandOf(m.Header.Type)
	attributes := uint32s(m.Data)
	device, about := attributes[rdmanl.AttrDevIndex]
	q := question{object: int(device), about: about}
	var find func() answer
	switch {
	case !ok:
		return unsupported()
	case command == rdmanl.CmdSysGet:
		q.request, find = GetSystem, k.system
	case command == rdmanl.CmdGet:
		q.request, find = GetDevice, func() answer { return k.devices(device, about) }
	case command == rdmanl.CmdPortGet:
		q.request, find = GetPort, func() answer { return k.ports(device, attributes[rdmanl.AttrPortIndex]) }
	default:
		return unsupported()
	}
	return q, func() answer {
		if k.facts.System == nil {
			return answer{errno: unix.ECONNREFUSED}
		}
		a := find()
		a.typ = m.Header.Type
		return a
	}
}

// uint32s returns those attributes that are numbers of 32 bits.
func uint32s(b []byte) map[uint16]uint32 {
	numbers := map[uint16]uint32{}
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return numbers
	}
	for ad.Next() {
		if v := ad.Bytes(); len(v) == 4 {
			numbers[ad.Type()] = binary.NativeEndian.Uint32(v)
		}
	}
	return numbers
}

func (k *Kernel) system() answer {
	var a answer
	a.add(0, encode(func(ae *netlink.AttributeEncoder) {
		s := k.facts.System
		ae.Uint8(rdmanl.AttrSysNetNSMode, uint8(numberOf(netnsModes, s.NetNSMode)))
		putBool(ae, rdmanl.AttrSysCopyOnFork, s.CopyOnFork)
		putBool(ae, rdmanl.AttrSysPrivilegedQKeyMode, s.PrivilegedQKey)
		putBool(ae, rdmanl.AttrSysMonitorMode, s.MonitorSupport)
	}))
	return a
}

// devices describes one device, or all.
func (k *Kernel) devices(index uint32, one bool) answer {
	var a answer
	for _, d := range k.facts.RDMA {
		if !one || d.Index == index {
			a.add(int(d.Index), deviceAttributes(d))
		}
	}
	if one && len(a.bodies) == 0 {
		return answer{errno: unix.EINVAL} // nldev's word for a device that is not there
	}
	return a
}

// ports describes one port of a device, or all for 0.
func (k *Kernel) ports(index, number uint32) answer {
	var a answer
	found := false
	for _, d := range k.facts.RDMA {
		if d.Index != index {
			continue
		}
		found = true
		for _, p := range d.Ports {
			if number == 0 || p.Number == int(number) {
				a.add(int(index), portAttributes(d, p))
			}
		}
	}
	if !found || number != 0 && len(a.bodies) == 0 {
		return answer{errno: unix.EINVAL}
	}
	return a
}

func deviceAttributes(d rdmanl.Device) []byte {
	return encode(func(ae *netlink.AttributeEncoder) {
		ae.Uint32(rdmanl.AttrDevIndex, d.Index)
		ae.String(rdmanl.AttrDevName, d.Name)
		ae.Uint32(rdmanl.AttrPortIndex, uint32(d.PortCount))
		ae.Uint64(rdmanl.AttrCapFlags, d.CapFlags)
		ae.String(rdmanl.AttrFWVersion, d.Firmware)
		putGUID(ae, rdmanl.AttrNodeGUID, d.NodeGUID)
		putGUID(ae, rdmanl.AttrSysImageGUID, d.SysImageGUID)
		if d.NodeType != "" {
			ae.Uint8(rdmanl.AttrDevNodeType, uint8(numberOf(nodeTypes, d.NodeType)))
		}
		putString(ae, rdmanl.AttrDevProtocol, d.Protocol)
		ae.Uint8(rdmanl.AttrDevDIM, boolByte(d.AdaptiveMod))
		if d.Type != "" {
			ae.Uint8(rdmanl.AttrDevType, uint8(numberOf(deviceTypes, d.Type)))
		}
		putString(ae, rdmanl.AttrParentName, d.Parent)
		ae.Uint8(rdmanl.AttrNameAssignType, boolByte(d.UserNamed))
		putUnknown(ae, d.Unknown)
	})
}

func portAttributes(d rdmanl.Device, p rdmanl.Port) []byte {
	return encode(func(ae *netlink.AttributeEncoder) {
		ae.Uint32(rdmanl.AttrDevIndex, d.Index)
		ae.String(rdmanl.AttrDevName, d.Name)
		ae.Uint32(rdmanl.AttrPortIndex, uint32(p.Number))
		ae.Uint64(rdmanl.AttrCapFlags, p.CapFlags)
		putGUID(ae, rdmanl.AttrSubnetPrefix, p.SubnetPrefix)
		ae.Uint32(rdmanl.AttrLID, p.LID)
		ae.Uint32(rdmanl.AttrSMLID, p.SMLID)
		ae.Uint8(rdmanl.AttrLMC, p.LMC)
		ae.Uint8(rdmanl.AttrPortState, uint8(numberOf(portStates, p.State)))
		ae.Uint8(rdmanl.AttrPortPhysState, uint8(numberOf(physStates, p.PhysState)))
		if p.NetdevIndex != 0 {
			ae.Uint32(rdmanl.AttrNetdevIndex, uint32(int32(p.NetdevIndex)))
			ae.String(rdmanl.AttrNetdevName, p.NetdevName)
		}
		putUnknown(ae, p.Unknown)
	})
}

func putUnknown(ae *netlink.AttributeEncoder, unknown map[uint16][]byte) {
	for typ, b := range unknown {
		ae.Bytes(typ, b)
	}
}

// putGUID encodes a GUID or prefix that is given as sysfs writes it.
func putGUID(ae *netlink.AttributeEncoder, typ uint16, guid string) {
	if v, err := strconv.ParseUint(strings.ReplaceAll(guid, ":", ""), 16, 64); err == nil {
		ae.Uint64(typ, v)
	}
}

func putBool(ae *netlink.AttributeEncoder, typ uint16, v *bool) {
	if v != nil {
		ae.Uint8(typ, boolByte(*v))
	}
}

func boolByte(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
