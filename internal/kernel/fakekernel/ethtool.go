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

// attrHeader is the number of the header attribute, the same in all commands
// but STATS_GET.
const attrHeader = 1

// ethtoolQuestion understands a command of ethtool.
func ethtoolQuestion(command uint8, attributes []byte) question {
	var where uint16 = attrHeader
	if command == unix.ETHTOOL_MSG_STATS_GET {
		where = ethtool.AttrStatsHeader
	}
	header := find(attributes, where)
	index, _ := number(header, unix.ETHTOOL_A_HEADER_DEV_INDEX)
	q := question{kind: netLink, object: int(int32(index)), about: index != 0, body: attributes}
	q.flags, _ = number(header, unix.ETHTOOL_A_HEADER_FLAGS)
	if row, ok := settingsQuestions[command]; ok {
		q.request = row.request
		q.answer = func(k *Kernel, q question) answer { return k.settings(q, row) }
		return q
	}
	row, ok := nicQuestions[command]
	switch {
	case command == unix.ETHTOOL_MSG_STATS_GET:
		q.request, q.answer = GetStandardStats, (*Kernel).standardStats
		return q
	case !ok:
		return unsupported()
	}
	q.request = row.request
	if q.flags&unix.ETHTOOL_FLAG_STATS != 0 && row.withStats != "" {
		q.request = row.withStats
	}
	q.answer = func(k *Kernel, q question) answer { return k.nicAnswers(q, row) }
	return q
}

// settingsQuestion is one of the commands that ethtool.LinkSettings come from.
type settingsQuestion struct {
	request Request
	reply   uint8
	put     func(*netlink.AttributeEncoder, ethtool.LinkSettings)
}

// settings answers one question about a link, or about all.
func (k *Kernel) settings(q question, row settingsQuestion) answer {
	a := answer{typ: ethtoolFamily}
	for _, i := range k.linksWith(q, maps.Keys(k.facts.Settings)) {
		a.add(i, encodeGeneric(row.reply, func(ae *netlink.AttributeEncoder) {
			putLinkHeader(ae, attrHeader, i)
			row.put(ae, k.facts.Settings[i])
		}))
	}
	return k.orNone(q, a)
}

// linksWith returns those links of some that a question is about, in order.
func (k *Kernel) linksWith(q question, some func(yield func(int) bool)) (indexes []int) {
	for i := range some {
		if !q.about || i == q.object {
			indexes = append(indexes, i)
		}
	}
	slices.Sort(indexes)
	return indexes
}

// orNone returns the answer, or the error of a link that has none or is not
// there.
func (k *Kernel) orNone(q question, a answer) answer {
	if !q.about || len(a.bodies) > 0 {
		return a
	}
	for _, l := range k.facts.Links {
		if l.Index == q.object {
			return answer{errno: unix.EOPNOTSUPP}
		}
	}
	return answer{errno: unix.ENODEV}
}

func putLinkHeader(ae *netlink.AttributeEncoder, typ uint16, index int) {
	nest(ae, typ, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(unix.ETHTOOL_A_HEADER_DEV_INDEX, uint32(int32(index)))
	})
}

func putLinkModes(ae *netlink.AttributeEncoder, s ethtool.LinkSettings) {
	ae.Uint8(unix.ETHTOOL_A_LINKMODES_AUTONEG, boolByte(s.Autoneg))
	var supported []uint
	if bit, ok := modeOf[s.MaxSpeedMegabits]; ok {
		supported = append(supported, bit)
	}
	putBitset(ae, unix.ETHTOOL_A_LINKMODES_OURS, supported, supported)
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

// putBitset encodes a compact bitset, with bits that are set and those that
// could be.
func putBitset(ae *netlink.AttributeEncoder, typ uint16, value, mask []uint) {
	const size = 128
	nest(ae, typ, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(unix.ETHTOOL_A_BITSET_SIZE, size)
		for typ, bits := range map[uint16][]uint{unix.ETHTOOL_A_BITSET_VALUE: value, unix.ETHTOOL_A_BITSET_MASK: mask} {
			var words [size / 32]uint32
			for _, bit := range bits {
				words[bit/32] |= 1 << (bit % 32)
			}
			var b []byte
			for _, w := range words {
				b = binary.NativeEndian.AppendUint32(b, w)
			}
			ae.Bytes(typ, b)
		}
	})
}

func putLinkSettingsPort(ae *netlink.AttributeEncoder, s ethtool.LinkSettings) {
	putEnum(ae, unix.ETHTOOL_A_LINKINFO_PORT, ports, s.Port)
}

func putLinkState(ae *netlink.AttributeEncoder, s ethtool.LinkSettings) {
	putBool(ae, unix.ETHTOOL_A_LINKSTATE_LINK, s.LinkDetected)
}

func putNothing(*netlink.AttributeEncoder, ethtool.LinkSettings) {}
