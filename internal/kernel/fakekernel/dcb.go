package fakekernel

import (
	"encoding/binary"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rtnl"
)

// dcbQuestion understands an RTM_GETDCB.
func dcbQuestion(m netlink.Message) question {
	if m.Data[1] != rtnl.DCBCmdIEEEGet {
		return unsupported()
	}
	name := text(m.Data[rtnl.SizeofDCBMsg:], rtnl.DCBAttrIfname)
	return question{request: GetPFC, kind: netLink, name: name, locate: (*Kernel).linkNamed, answer: (*Kernel).pfc}
}

// pfc says what priority flow control a link has.
func (k *Kernel) pfc(q question) answer {
	if !q.about {
		return answer{errno: unix.ENODEV}
	}
	nic := k.facts.NICs[q.object]
	if nic == nil || nic.PFC == nil {
		return answer{errno: unix.EOPNOTSUPP}
	}
	a, now := answer{typ: unix.RTM_GETDCB}, nic.PFC
	a.addLive(q.object, func() []byte {
		return append([]byte{unix.AF_UNSPEC, rtnl.DCBCmdIEEEGet, 0, 0}, encode(func(ae *netlink.AttributeEncoder) {
			ae.String(rtnl.DCBAttrIfname, q.name)
			nest(ae, rtnl.DCBAttrIEEE, func(ae *netlink.AttributeEncoder) { ae.Bytes(rtnl.DCBAttrIEEEPFC, ieeePFC(now())) })
		})...)
	})
	return a
}

// ieeePFC encodes a struct ieee_pfc.
func ieeePFC(p rtnl.PFC) []byte {
	b := make([]byte, 8, rtnl.SizeofIEEEPFC)
	b[0], b[1] = byte(len(p.Requests)), p.Enabled
	for _, v := range p.Requests {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	for _, v := range p.Indications {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}
