package fakekernel

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
)

// Numbers of generic netlink families. That of ethtool is given out by the
// kernel as it comes.
const (
	controlFamily = unix.GENL_ID_CTRL
	ethtoolFamily = 21
)

// generic is the protocol of generic netlink, of its controller and ethtool.
func (k *Kernel) generic(m netlink.Message) (question, func() answer) {
	if len(m.Data) < unix.GENL_HDRLEN {
		return unsupported()
	}
	command, attributes := m.Data[0], m.Data[unix.GENL_HDRLEN:]
	switch m.Header.Type {
	case controlFamily:
		return question{request: getFamily}, family
	case ethtoolFamily:
		if q, ok := ethtoolQuestions[command]; ok {
			index := requestedLink(attributes)
			return question{request: q.request, object: index, about: index != 0}, func() answer {
				return k.settings(index, q)
			}
		}
	}
	return unsupported()
}

// family is what the controller says of ethtool.
func family() answer {
	a := answer{typ: controlFamily}
	a.add(0, append(genericHeader(unix.CTRL_CMD_NEWFAMILY), encode(func(ae *netlink.AttributeEncoder) {
		ae.Uint16(unix.CTRL_ATTR_FAMILY_ID, ethtoolFamily)
		ae.String(unix.CTRL_ATTR_FAMILY_NAME, unix.ETHTOOL_GENL_NAME)
		ae.Uint32(unix.CTRL_ATTR_VERSION, unix.ETHTOOL_GENL_VERSION)
	})...))
	return a
}

func genericHeader(command uint8) []byte { return []byte{command, 1, 0, 0} }

// ethtoolQuestion is one of the commands that ethtool.LinkSettings come from.
type ethtoolQuestion struct {
	request Request
	reply   uint8
	put     func(*netlink.AttributeEncoder, ethtool.LinkSettings)
}

// attrHeader is the number of the header attribute, the same in all commands.
const attrHeader = 1

// settings answers one question about a link, or about all for 0.
func (k *Kernel) settings(index int, q ethtoolQuestion) answer {
	a := answer{typ: ethtoolFamily}
	for _, i := range slices.Sorted(maps.Keys(k.facts.Settings)) {
		if index == 0 || index == i {
			a.add(i, append(genericHeader(q.reply), encode(func(ae *netlink.AttributeEncoder) {
				ae.Nested(attrHeader, func(ae *netlink.AttributeEncoder) error {
					ae.Uint32(unix.ETHTOOL_A_HEADER_DEV_INDEX, uint32(int32(i)))
					return nil
				})
				q.put(ae, k.facts.Settings[i])
			})...))
		}
	}
	if index != 0 && len(a.bodies) == 0 {
		return answer{errno: k.noSettings(index)}
	}
	return a
}

// noSettings is the error of a link without settings, or of no link.
func (k *Kernel) noSettings(index int) unix.Errno {
	for _, l := range k.facts.Links {
		if l.Index == index {
			return unix.EOPNOTSUPP
		}
	}
	return unix.ENODEV
}

// requestedLink returns the index of the link that a request is about, 0 for
// all.
func requestedLink(attributes []byte) (index int) {
	ad, err := netlink.NewAttributeDecoder(attributes)
	if err != nil {
		return 0
	}
	for ad.Next() {
		if ad.Type() == attrHeader {
			index = int(int32(uint32s(ad.Bytes())[unix.ETHTOOL_A_HEADER_DEV_INDEX]))
		}
	}
	return index
}

func putLinkModes(ae *netlink.AttributeEncoder, s ethtool.LinkSettings) {
	ae.Uint8(unix.ETHTOOL_A_LINKMODES_AUTONEG, boolByte(s.Autoneg))
	ae.Nested(unix.ETHTOOL_A_LINKMODES_OURS, func(ae *netlink.AttributeEncoder) error {
		supported := make([]byte, 16)
		if bit, ok := modeOf[s.MaxSpeedMegabits]; ok {
			binary.NativeEndian.PutUint32(supported[bit/32*4:], 1<<(bit%32))
		}
		ae.Uint32(unix.ETHTOOL_A_BITSET_SIZE, uint32(8*len(supported)))
		ae.Bytes(unix.ETHTOOL_A_BITSET_VALUE, supported)
		ae.Bytes(unix.ETHTOOL_A_BITSET_MASK, supported)
		return nil
	})
	speed, duplex := uint32(s.SpeedMegabits), uint8(numberOf(duplexes, s.Duplex))
	if s.SpeedMegabits == 0 {
		speed = math.MaxUint32
	}
	ae.Uint32(unix.ETHTOOL_A_LINKMODES_SPEED, speed)
	ae.Uint8(unix.ETHTOOL_A_LINKMODES_DUPLEX, duplex)
	if s.Lanes != 0 {
		ae.Uint32(unix.ETHTOOL_A_LINKMODES_LANES, uint32(s.Lanes))
	}
}

func putLinkSettingsPort(ae *netlink.AttributeEncoder, s ethtool.LinkSettings) {
	if s.Port != "" {
		ae.Uint8(unix.ETHTOOL_A_LINKINFO_PORT, uint8(numberOf(ports, s.Port)))
	}
}

func putLinkState(ae *netlink.AttributeEncoder, s ethtool.LinkSettings) {
	putBool(ae, unix.ETHTOOL_A_LINKSTATE_LINK, s.LinkDetected)
}

func putNothing(*netlink.AttributeEncoder, ethtool.LinkSettings) {}
