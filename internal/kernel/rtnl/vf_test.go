package rtnl

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// vfMAC returns the attributes that every VF has.
func vfMAC(number uint32, address ...byte) []byte {
	return attribute(unix.IFLA_VF_MAC, append(words(number), append(address, make([]byte, 32-len(address))...)...))
}

// vfList returns the attributes of a PF with VFs.
func vfList(vfs ...[]byte) []byte {
	var list []byte
	for _, vf := range vfs {
		list = append(list, attribute(unix.IFLA_VF_INFO, vf)...)
	}
	return nest(number(unix.IFLA_NUM_VF, uint32(len(vfs))), attribute(unix.IFLA_VFINFO_LIST, list))
}

func vfGUID(vf uint32, guid uint64) []byte {
	return binary.NativeEndian.AppendUint64(words(vf, 0), guid)
}

func wide(typ uint16, v uint64) []byte {
	return attribute(typ, binary.NativeEndian.AppendUint64(nil, v))
}

// mellanox is what mlx5_core says of a VF, in the order of the kernel.
func mellanox(n uint32) []byte {
	return nest(
		vfMAC(n, 2, 0, 0, 0, 0, byte(n)),
		attribute(unix.IFLA_VF_BROADCAST, make([]byte, 32)),
		attribute(unix.IFLA_VF_VLAN, words(n, 100, 3)),
		attribute(unix.IFLA_VF_RATE, words(n, 1000, 25000)),
		attribute(unix.IFLA_VF_TX_RATE, words(n, 25000)),
		attribute(unix.IFLA_VF_SPOOFCHK, words(n, 1)),
		attribute(unix.IFLA_VF_LINK_STATE, words(n, 2)),
		attribute(unix.IFLA_VF_RSS_QUERY_EN, words(n, math.MaxUint32)),
		attribute(unix.IFLA_VF_TRUST, words(n, 0)),
		attribute(unix.IFLA_VF_IB_NODE_GUID, vfGUID(n, 0x0c42a10300651234)),
		attribute(unix.IFLA_VF_IB_PORT_GUID, vfGUID(n, 0x0c42a10300651235)),
		attribute(unix.IFLA_VF_VLAN_LIST, attribute(unix.IFLA_VF_VLAN_INFO, append(words(n, 100, 3), 0x88, 0xa8, 0, 0))),
		attribute(unix.IFLA_VF_STATS, nest(
			wide(unix.IFLA_VF_STATS_RX_PACKETS, 1), wide(unix.IFLA_VF_STATS_TX_PACKETS, 2),
			wide(unix.IFLA_VF_STATS_RX_BYTES, 3), wide(unix.IFLA_VF_STATS_TX_BYTES, 1<<40),
			wide(unix.IFLA_VF_STATS_BROADCAST, 5), wide(unix.IFLA_VF_STATS_MULTICAST, 6),
			wide(unix.IFLA_VF_STATS_RX_DROPPED, 7), wide(unix.IFLA_VF_STATS_TX_DROPPED, 8),
		)),
	)
}

func TestVFs(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	ipoib := linkBody(4)
	ipoib[2] = unix.ARPHRD_INFINIBAND
	tests := []struct {
		name string
		in   []byte
		want []VF
	}{
		{name: "not a PF", in: linkBody(4)},
		{name: "PF without VFs", in: nest(linkBody(4), vfList())},
		{name: "driver that says nothing of them", in: nest(linkBody(4), number(unix.IFLA_NUM_VF, 2))},
		{
			name: "Ethernet",
			in:   nest(linkBody(4), vfList(mellanox(0), vfMAC(1))),
			want: []VF{
				{
					Number: 0, Address: "02:00:00:00:00:00", VLANID: 100, VLANQoS: 3, VLANProto: "802.1ad",
					MinTxMegabits: 1000, MaxTxMegabits: 25000, SpoofCheck: &yes, Trust: &no, LinkState: "disable",
					NodeGUID: "0c42:a103:0065:1234", PortGUID: "0c42:a103:0065:1235",
					Stats: &VFStats{
						RxPackets: 1, TxPackets: 2, RxBytes: 3, TxBytes: 1 << 40,
						Broadcast: 5, Multicast: 6, RxDropped: 7, TxDropped: 8,
					},
				},
				{Number: 1, Address: "00:00:00:00:00:00"},
			},
		},
		{
			name: "IPoIB",
			in:   nest(ipoib, vfList(vfMAC(5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20))),
			want: []VF{{Number: 5, Address: "01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13:14"}},
		},
		{
			name: "values of a new kernel",
			in: nest(linkBody(4), vfList(nest(
				vfMAC(0),
				attribute(unix.IFLA_VF_LINK_STATE, words(0, 9)),
				attribute(unix.IFLA_VF_VLAN_LIST, attribute(unix.IFLA_VF_VLAN_INFO, append(words(0, 1, 0), 0x91, 0, 0, 0))),
			))),
			want: []VF{{Address: "00:00:00:00:00:00", LinkState: "9", VLANID: 1, VLANProto: "37120"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, exchange{
				typ: unix.RTM_GETLINK, flags: netlink.Request, body: linkRequest(4, extVF),
				answer: []netlink.Message{message(unix.RTM_NEWLINK, 0, tt.in)},
			})
			got, err := c.VFs(4)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("VFs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestVFsTooMany has more VFs than one attribute has room for: the kernel lets
// its length wrap, or refuses.
func TestVFsTooMany(t *testing.T) {
	t.Parallel()
	few := []netlink.Message{message(unix.RTM_NEWLINK, 0, nest(linkBody(4), vfList(vfMAC(0))))}
	wrapped := []netlink.Message{message(unix.RTM_NEWLINK, 0, append(linkBody(4), make([]byte, math.MaxUint16)...))}
	full := exchange{typ: unix.RTM_GETLINK, flags: netlink.Request, body: linkRequest(4, extVF)}
	brief := exchange{typ: unix.RTM_GETLINK, flags: netlink.Request, body: linkRequest(4, extVF|extSkipStats)}
	with := func(e exchange, answer []netlink.Message, errno unix.Errno) exchange {
		e.answer, e.errno = answer, errno
		return e
	}
	tests := []struct {
		name      string
		exchanges []exchange
		vfs       int
		err       string
	}{
		{name: "wrapped", exchanges: []exchange{with(full, wrapped, 0), with(brief, few, 0)}, vfs: 1},
		{name: "refused", exchanges: []exchange{with(full, nil, unix.EMSGSIZE), with(brief, few, 0)}, vfs: 1},
		{
			name: "even without statistics", exchanges: []exchange{with(full, wrapped, 0), with(brief, wrapped, 0)},
			err: "VFs of link 4: an answer of 65551 bytes, want at most 65535: message longer than the buffer",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			vfs, err := serve(t, tt.exchanges...).VFs(4)
			if errorText(err) != tt.err || len(vfs) != tt.vfs {
				t.Errorf("%d VFs, error %q; want %d, %q", len(vfs), errorText(err), tt.vfs, tt.err)
			}
		})
	}
}

func TestParseVFsErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{name: "empty", want: "0 bytes, want a header of 16"},
		{name: "address", in: nest(linkBody(4), vfList(attribute(unix.IFLA_VF_MAC, words(0)))), want: "attribute 22: attribute 1: attribute 1: 4 bytes, want 36"},
		{name: "rate", in: nest(linkBody(4), vfList(attribute(unix.IFLA_VF_RATE, words(0)))), want: "attribute 22: attribute 1: attribute 6: 4 bytes, want 12"},
		{name: "GUID", in: nest(linkBody(4), vfList(attribute(unix.IFLA_VF_IB_NODE_GUID, words(0)))), want: "attribute 22: attribute 1: attribute 10: 4 bytes, want 12 or 16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, err := parseVFs(tt.in); errorText(err) != tt.want || got != nil {
				t.Errorf("got %+v, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func FuzzParseVFs(f *testing.F) {
	f.Add(nest(linkBody(4), vfList(mellanox(0), mellanox(1))))
	f.Add(nest(linkBody(4), vfList(vfMAC(0))))
	f.Fuzz(func(t *testing.T, b []byte) {
		vfs, ok := checkParser(t, b, parseVFs)
		if ok && len(vfs) > len(b)/unix.SizeofNlAttr {
			t.Fatalf("%d VFs in %d bytes", len(vfs), len(b))
		}
	})
}
