package rtnl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// VF is what a PF's driver is told to do with one of its virtual functions, as
// IFLA_VF_INFO describes it. A driver says only what it knows.
type VF struct {
	Number        int      `json:"number"`
	Address       string   `json:"address,omitempty"`       // all zeros until one is set
	VLANID        int      `json:"vlanID,omitempty"`        // 0: none is enforced
	VLANQoS       int      `json:"vlanQoS,omitempty"`       // priority in the tag
	VLANProto     string   `json:"vlanProto,omitempty"`     // "802.1Q", "802.1ad"; the ethertype in decimal where unknown
	MinTxMegabits int      `json:"minTxMegabits,omitempty"` // Mbit/s; 0: nothing guaranteed
	MaxTxMegabits int      `json:"maxTxMegabits,omitempty"` // Mbit/s; 0: no limit
	SpoofCheck    *bool    `json:"spoofCheck,omitempty"`
	Trust         *bool    `json:"trust,omitempty"`
	RSSQuery      *bool    `json:"rssQuery,omitempty"`  // the VF may read its RSS table and key
	LinkState     string   `json:"linkState,omitempty"` // "auto" (as the PF's), "enable", "disable"
	NodeGUID      string   `json:"nodeGUID,omitempty"`  // 0c42:a103:0065:1234, as sysfs writes it
	PortGUID      string   `json:"portGUID,omitempty"`  // likewise
	Stats         *VFStats `json:"stats,omitempty"`     // nil where the driver has none, and see Client.VFs
}

// VFStats counts what passed the embedded switch to and from a VF.
type VFStats struct {
	RxPackets uint64 `json:"rxPackets"`
	TxPackets uint64 `json:"txPackets"`
	RxBytes   uint64 `json:"rxBytes"`
	TxBytes   uint64 `json:"txBytes"`
	Broadcast uint64 `json:"broadcast"` // packets received
	Multicast uint64 `json:"multicast"` // packets received
	RxDropped uint64 `json:"rxDropped"`
	TxDropped uint64 `json:"txDropped"`
}

// VFs returns the VFs of the PF with a link index, without those that the
// driver says nothing about; none for a link that is not a PF.
//
// The kernel puts all of them into one attribute of at most 64 KiB, which
// about 190 VFs fill; beyond that VFs asks again without statistics. It is an
// expensive question: the driver asks its firmware several times per VF.
func (c *Client) VFs(index int) ([]VF, error) {
	vfs, err := c.vfs(index, extVF)
	if errors.Is(err, errTruncated) || errors.Is(err, unix.EMSGSIZE) {
		return c.vfs(index, extVF|extSkipStats)
	}
	return vfs, err
}

func (c *Client) vfs(index int, extMask uint32) ([]VF, error) {
	object := fmt.Sprintf("VFs of link %d", index)
	m, err := c.get(object, unix.RTM_GETLINK, linkRequest(index, extMask))
	if err != nil {
		return nil, err
	}
	// The kernel does not check that the list fits the 16 bits of its length.
	if len(m.Data) > math.MaxUint16 {
		return nil, fmt.Errorf("%s: an answer of %d bytes, want at most %d: %w", object, len(m.Data), math.MaxUint16, errTruncated)
	}
	vfs, err := parseVFs(m.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object, err)
	}
	return vfs, nil
}

// parseVFs decodes the VFs in the body of an RTM_NEWLINK.
func parseVFs(b []byte) ([]VF, error) {
	if err := header(b, unix.SizeofIfInfomsg); err != nil {
		return nil, err
	}
	addressLen := 6
	if binary.NativeEndian.Uint16(b[2:]) == unix.ARPHRD_INFINIBAND {
		addressLen = 20
	}
	var vfs []VF
	a := attributes{rest: b[unix.SizeofIfInfomsg:]}
	for a.next() {
		if a.typ == unix.IFLA_VFINFO_LIST {
			var err error
			vfs, err = parseVFList(a.data, addressLen)
			a.fail(err)
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	return vfs, nil
}

// parseVFList decodes IFLA_VFINFO_LIST.
func parseVFList(b []byte, addressLen int) ([]VF, error) {
	var vfs []VF
	a := attributes{rest: b}
	for a.next() {
		if a.typ != unix.IFLA_VF_INFO {
			continue
		}
		vf, err := parseVF(a.data, addressLen)
		a.fail(err)
		vfs = append(vfs, vf)
	}
	return vfs, a.err
}

// parseVF decodes IFLA_VF_INFO.
func parseVF(b []byte, addressLen int) (VF, error) {
	var vf VF
	a := attributes{rest: b}
	for a.next() {
		switch a.typ {
		case unix.IFLA_VF_MAC:
			vf.Address = hexBytes(a.fixed(4 + 32)[4 : 4+addressLen])
			vf.Number = int(binary.NativeEndian.Uint32(a.fixed(4 + 32)))
		case unix.IFLA_VF_STATS:
			a.fail(vf.stats(a.data))
		case unix.IFLA_VF_VLAN_LIST:
			a.fail(vf.vlans(a.data))
		default:
			vf.setting(&a)
		}
	}
	if a.err != nil {
		return VF{}, a.err
	}
	return vf, nil
}

// setting decodes the attributes that are a VF's number and up to two values.
func (vf *VF) setting(a *attributes) {
	// A struct of 32-bit words; the first is the number of the VF.
	word := func(i, n int) uint32 { return binary.NativeEndian.Uint32(a.fixed(4 * n)[4*i:]) }
	switch a.typ {
	case unix.IFLA_VF_VLAN:
		vf.VLANID, vf.VLANQoS = int(word(1, 3)), int(word(2, 3))
	case unix.IFLA_VF_TX_RATE: // all that kernels before 3.15 have
		vf.MaxTxMegabits = int(word(1, 2))
	case unix.IFLA_VF_RATE:
		vf.MinTxMegabits, vf.MaxTxMegabits = int(word(1, 3)), int(word(2, 3))
	case unix.IFLA_VF_SPOOFCHK:
		vf.SpoofCheck = onOff(word(1, 2))
	case unix.IFLA_VF_TRUST:
		vf.Trust = onOff(word(1, 2))
	case unix.IFLA_VF_RSS_QUERY_EN:
		vf.RSSQuery = onOff(word(1, 2))
	case unix.IFLA_VF_LINK_STATE:
		vf.LinkState = name(vfLinkStates, word(1, 2))
	case unix.IFLA_VF_IB_NODE_GUID:
		vf.NodeGUID = a.guid()
	case unix.IFLA_VF_IB_PORT_GUID:
		vf.PortGUID = a.guid()
	}
}

// onOff returns a setting, nil where the driver left the kernel's -1 in place.
func onOff(v uint32) *bool {
	if v == math.MaxUint32 {
		return nil
	}
	on := v != 0
	return &on
}

// guid decodes struct ifla_vf_guid, a number in the order of the CPU after the
// VF's own, where the CPU's alignment puts it.
func (a *attributes) guid() string {
	if len(a.data) != 12 && len(a.data) != 16 {
		a.fail(fmt.Errorf("%d bytes, want 12 or 16", len(a.data)))
		return ""
	}
	g := binary.NativeEndian.Uint64(a.data[len(a.data)-8:])
	return fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xffff, g>>16&0xffff, g&0xffff)
}

// vlans decodes IFLA_VF_VLAN_LIST, of which the kernel uses one element.
func (vf *VF) vlans(b []byte) error {
	a := attributes{rest: b}
	for a.next() {
		if a.typ != unix.IFLA_VF_VLAN_INFO {
			continue
		}
		info := a.fixed(16)
		vf.VLANID = int(binary.NativeEndian.Uint32(info[4:]))
		vf.VLANQoS = int(binary.NativeEndian.Uint32(info[8:]))
		vf.VLANProto = name(vlanProtocols, uint32(binary.BigEndian.Uint16(info[12:])))
	}
	return a.err
}

// stats decodes IFLA_VF_STATS.
func (vf *VF) stats(b []byte) error {
	var s VFStats
	a := attributes{rest: b}
	for a.next() {
		switch a.typ {
		case unix.IFLA_VF_STATS_RX_PACKETS:
			s.RxPackets = a.uint64()
		case unix.IFLA_VF_STATS_TX_PACKETS:
			s.TxPackets = a.uint64()
		case unix.IFLA_VF_STATS_RX_BYTES:
			s.RxBytes = a.uint64()
		case unix.IFLA_VF_STATS_TX_BYTES:
			s.TxBytes = a.uint64()
		case unix.IFLA_VF_STATS_BROADCAST:
			s.Broadcast = a.uint64()
		case unix.IFLA_VF_STATS_MULTICAST:
			s.Multicast = a.uint64()
		case unix.IFLA_VF_STATS_RX_DROPPED:
			s.RxDropped = a.uint64()
		case unix.IFLA_VF_STATS_TX_DROPPED:
			s.TxDropped = a.uint64()
		}
	}
	vf.Stats = &s
	return a.err
}
