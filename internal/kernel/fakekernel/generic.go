package fakekernel

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Numbers of generic netlink families. Those of all but the controller are
// given out by the kernel as they come.
const (
	controlFamily = unix.GENL_ID_CTRL
	ethtoolFamily = 21
	devlinkFamily = 22
)

// generic is the protocol of generic netlink, of its controller and of the
// families ethtool and devlink.
func generic(m netlink.Message) question {
	if len(m.Data) < unix.GENL_HDRLEN {
		return unsupported()
	}
	command, attributes := m.Data[0], m.Data[unix.GENL_HDRLEN:]
	switch m.Header.Type {
	case controlFamily:
		return question{request: getFamily, body: attributes, answer: (*Kernel).family}
	case ethtoolFamily:
		return ethtoolQuestion(command, attributes)
	case devlinkFamily:
		return devlinkQuestion(command, attributes)
	}
	return unsupported()
}

// family is what the controller says of a family.
func (k *Kernel) family(q question) answer {
	var number uint16
	var version uint32
	name := text(q.body, unix.CTRL_ATTR_FAMILY_NAME)
	switch {
	case name == unix.ETHTOOL_GENL_NAME:
		number, version = ethtoolFamily, unix.ETHTOOL_GENL_VERSION
	case name == unix.DEVLINK_GENL_NAME && k.facts.Devlink != nil:
		number, version = devlinkFamily, unix.DEVLINK_GENL_VERSION
	default:
		return answer{errno: unix.ENOENT}
	}
	a := answer{typ: controlFamily}
	a.add(0, encodeGeneric(unix.CTRL_CMD_NEWFAMILY, func(ae *netlink.AttributeEncoder) {
		ae.Uint16(unix.CTRL_ATTR_FAMILY_ID, number)
		ae.String(unix.CTRL_ATTR_FAMILY_NAME, name)
		ae.Uint32(unix.CTRL_ATTR_VERSION, version)
	}))
	return a
}

// encodeGeneric encodes a message of generic netlink.
func encodeGeneric(command uint8, attributes func(*netlink.AttributeEncoder)) []byte {
	return append([]byte{command, 1, 0, 0}, encode(attributes)...)
}
