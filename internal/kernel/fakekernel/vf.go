package fakekernel

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rtnl"
)

// extSkipStats is RTEXT_FILTER_SKIP_STATS of include/uapi/linux/rtnetlink.h.
const extSkipStats = 1 << 3

// vfMessage is the body of an RTM_NEWLINK with the VFs of a PF. The error is
// that of a list that does not fit an attribute.
func vfMessage(l rtnl.Link, n *NIC, flags uint32) (body, unix.Errno) {
	vfs, counted := slices.Clone(n.VFs), n.VFStats
	if flags&extSkipStats != 0 {
		counted = nil
		for i := range vfs {
			vfs[i].Stats = nil
		}
	}
	var list []byte
	for _, vf := range vfs {
		list = append(list, encode(func(ae *netlink.AttributeEncoder) {
			nest(ae, unix.IFLA_VF_INFO, func(ae *netlink.AttributeEncoder) { putVF(ae, vf, counted != nil) })
		})...)
	}
	if len(list) > math.MaxUint16-attributeHeader {
		return nil, unix.EMSGSIZE
	}
	b := slices.Concat(linkMessage(l), encode(func(ae *netlink.AttributeEncoder) {
		ae.Uint32(unix.IFLA_NUM_VF, uint32(len(vfs)))
		ae.Bytes(netlink.Nested|unix.IFLA_VFINFO_LIST, list)
	}))
	if counted == nil {
		return func() []byte { return b }, 0
	}
	at := places(b[unix.SizeofIfInfomsg:], unix.IFLA_VFINFO_LIST, unix.IFLA_VF_INFO, unix.IFLA_VF_STATS)
	return func() []byte {
		b := slices.Clone(b)
		for i, vf := range vfs {
			fillVFStats(b[unix.SizeofIfInfomsg+at[i]:], counted(vf.Number))
		}
		return b
	}, 0
}

func putVF(ae *netlink.AttributeEncoder, vf rtnl.VF, counted bool) {
	number := uint32(vf.Number)
	ae.Bytes(unix.IFLA_VF_MAC, slices.Concat(words(number), padded(vf.Address, 32)))
	ae.Bytes(unix.IFLA_VF_VLAN, words(number, uint32(vf.VLANID), uint32(vf.VLANQoS)))
	ae.Bytes(unix.IFLA_VF_RATE, words(number, uint32(vf.MinTxMegabits), uint32(vf.MaxTxMegabits)))
	ae.Bytes(unix.IFLA_VF_TX_RATE, words(number, uint32(vf.MaxTxMegabits)))
	ae.Bytes(unix.IFLA_VF_SPOOFCHK, words(number, onOff(vf.SpoofCheck)))
	ae.Bytes(unix.IFLA_VF_TRUST, words(number, onOff(vf.Trust)))
	ae.Bytes(unix.IFLA_VF_RSS_QUERY_EN, words(number, onOff(vf.RSSQuery)))
	if vf.LinkState != "" {
		ae.Bytes(unix.IFLA_VF_LINK_STATE, words(number, numberOf(vfLinkStates, vf.LinkState)))
	}
	if vf.VLANProto != "" {
		nest(ae, unix.IFLA_VF_VLAN_LIST, func(ae *netlink.AttributeEncoder) {
			b := append(words(number, uint32(vf.VLANID), uint32(vf.VLANQoS)), 0, 0, 0, 0)
			binary.BigEndian.PutUint16(b[12:], uint16(numberOf(vlanProtocols, vf.VLANProto)))
			ae.Bytes(unix.IFLA_VF_VLAN_INFO, b)
		})
	}
	putVFGUID(ae, unix.IFLA_VF_IB_NODE_GUID, number, vf.NodeGUID)
	putVFGUID(ae, unix.IFLA_VF_IB_PORT_GUID, number, vf.PortGUID)
	if vf.Stats != nil || counted {
		nest(ae, unix.IFLA_VF_STATS, func(ae *netlink.AttributeEncoder) { putVFStats(ae, vf.Stats) })
	}
}

// putVFGUID encodes a struct ifla_vf_guid.
func putVFGUID(ae *netlink.AttributeEncoder, typ uint16, vf uint32, guid string) {
	if v, err := strconv.ParseUint(strings.ReplaceAll(guid, ":", ""), 16, 64); err == nil {
		ae.Bytes(typ, binary.NativeEndian.AppendUint64(words(vf, 0), v))
	}
}

// vfStats are the statistics of a VF in the order of their attributes.
func vfStats(s rtnl.VFStats) [8]uint64 {
	return [8]uint64{s.RxPackets, s.TxPackets, s.RxBytes, s.TxBytes, s.Broadcast, s.Multicast, s.RxDropped, s.TxDropped}
}

func putVFStats(ae *netlink.AttributeEncoder, s *rtnl.VFStats) {
	if s == nil {
		s = &rtnl.VFStats{}
	}
	values := vfStats(*s)
	for i, typ := range [...]uint16{
		unix.IFLA_VF_STATS_RX_PACKETS, unix.IFLA_VF_STATS_TX_PACKETS, unix.IFLA_VF_STATS_RX_BYTES, unix.IFLA_VF_STATS_TX_BYTES,
		unix.IFLA_VF_STATS_BROADCAST, unix.IFLA_VF_STATS_MULTICAST, unix.IFLA_VF_STATS_RX_DROPPED, unix.IFLA_VF_STATS_TX_DROPPED,
	} {
		ae.Uint64(typ, values[i])
	}
}

// fillVFStats writes statistics over encoded ones.
func fillVFStats(b []byte, s rtnl.VFStats) {
	for i, v := range vfStats(s) {
		binary.NativeEndian.PutUint64(b[i*(attributeHeader+8)+attributeHeader:], v)
	}
}

// words encodes a struct of 32-bit numbers.
func words(numbers ...uint32) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return b
}

// padded returns an address with zeros behind it.
func padded(address string, size int) []byte {
	b := make([]byte, size)
	digits, err := hex.DecodeString(strings.ReplaceAll(address, ":", ""))
	if err == nil {
		copy(b, digits)
	}
	return b
}

// onOff is a setting as the kernel encodes it, with -1 for one that the driver
// does not say.
func onOff(v *bool) uint32 {
	if v == nil {
		return math.MaxUint32
	}
	return uint32(boolByte(*v))
}
