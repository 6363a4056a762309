package fakekernel

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// rdma is the protocol of NETLINK_RDMA, of its client nldev.
func rdma(m netlink.Message) question {
	command, ok := rdmanl.CommandOf(m.Header.Type)
	if !ok {
		return unsupported()
	}
	row := rdmaQuestions[command]
	if command == rdmanl.CmdStatGet {
		row = statisticsQuestion(m)
	}
	if row.answer == nil {
		return unsupported()
	}
	device, about := number(m.Data, rdmanl.AttrDevIndex)
	port, _ := number(m.Data, rdmanl.AttrPortIndex)
	return question{
		request: row.request,
		kind:    rdmaDevice,
		object:  int(device),
		about:   about,
		number:  int(port),
		body:    m.Data,
		changes: row.changes,
		answer: func(k *Kernel, q question) answer {
			if k.facts.System == nil {
				return answer{errno: unix.ECONNREFUSED}
			}
			a := row.answer(k, q)
			a.typ = m.Header.Type
			return a
		},
	}
}

// rdmaQuestion is a command of nldev.
type rdmaQuestion struct {
	request Request
	answer  func(*Kernel, question) answer
	changes bool
}

// device returns the RDMA device that a question is about, nil where there is
// none, to which nldev says EINVAL.
func (k *Kernel) device(q question) *rdmanl.Device {
	for i, d := range k.facts.RDMA {
		if q.about && int(d.Index) == q.object {
			return &k.facts.RDMA[i]
		}
	}
	return nil
}

// hca returns what more is known of the device that a question is about.
func (k *Kernel) hca(q question) *HCA {
	if h := k.facts.HCAs[uint32(q.object)]; h != nil {
		return h
	}
	return &HCA{}
}

// hcaPort returns what is known of the port that a question is about; the error
// is that of a port that is not there.
func (k *Kernel) hcaPort(q question) (*HCAPort, unix.Errno) {
	d := k.device(q)
	if d == nil || q.number < 1 || q.number > d.PortCount {
		return nil, unix.EINVAL
	}
	if p := k.hca(q).Ports[q.number]; p != nil {
		return p, 0
	}
	return &HCAPort{}, 0
}

func (k *Kernel) system(question) (a answer) {
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
func (k *Kernel) devices(q question) (a answer) {
	for _, d := range k.facts.RDMA {
		if !q.about || int(d.Index) == q.object {
			a.add(int(d.Index), deviceAttributes(d))
		}
	}
	if q.about && len(a.bodies) == 0 {
		return answer{errno: unix.EINVAL} // nldev's word for a device that is not there
	}
	return a
}

// ports describes one port of a device, or all for 0.
func (k *Kernel) ports(q question) (a answer) {
	d := k.device(q)
	if d == nil {
		return answer{errno: unix.EINVAL}
	}
	for _, p := range d.Ports {
		if q.number == 0 || p.Number == q.number {
			a.add(q.object, portAttributes(*d, p))
		}
	}
	if q.number != 0 && len(a.bodies) == 0 {
		return answer{errno: unix.EINVAL}
	}
	return a
}

// putHandle encodes which device and, but for 0, which port a message is about.
func putHandle(ae *netlink.AttributeEncoder, d *rdmanl.Device, port int) {
	ae.Uint32(rdmanl.AttrDevIndex, d.Index)
	ae.String(rdmanl.AttrDevName, d.Name)
	if port != 0 {
		ae.Uint32(rdmanl.AttrPortIndex, uint32(port))
	}
}

func deviceAttributes(d rdmanl.Device) []byte {
	return encode(func(ae *netlink.AttributeEncoder) {
		putHandle(ae, &d, d.PortCount)
		ae.Uint64(rdmanl.AttrCapFlags, d.CapFlags)
		ae.String(rdmanl.AttrFWVersion, d.Firmware)
		putGUID(ae, rdmanl.AttrNodeGUID, d.NodeGUID)
		putGUID(ae, rdmanl.AttrSysImageGUID, d.SysImageGUID)
		putEnum(ae, rdmanl.AttrDevNodeType, nodeTypes, d.NodeType)
		putString(ae, rdmanl.AttrDevProtocol, d.Protocol)
		ae.Uint8(rdmanl.AttrDevDIM, boolByte(d.AdaptiveMod))
		putEnum(ae, rdmanl.AttrDevType, deviceTypes, d.Type)
		putString(ae, rdmanl.AttrParentName, d.Parent)
		ae.Uint8(rdmanl.AttrNameAssignType, boolByte(d.UserNamed))
		putUnknown(ae, d.Unknown)
	})
}

func portAttributes(d rdmanl.Device, p rdmanl.Port) []byte {
	return encode(func(ae *netlink.AttributeEncoder) {
		putHandle(ae, &d, p.Number)
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
