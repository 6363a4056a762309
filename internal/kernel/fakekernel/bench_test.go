package fakekernel

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
)

// benchKernel has the 8 PFs and 128 VFs of a big node, all in one namespace.
func benchKernel() *Kernel {
	f := Facts{System: &rdmanl.System{NetNSMode: "shared"}, HCAs: map[uint32]*HCA{}, NICs: map[int]*NIC{}}
	count := func(dst []uint64) {
		for i := range dst {
			dst[i] = uint64(i)
		}
	}
	for i := range 136 {
		p := &HCAPort{Values: count}
		for c := range 113 {
			p.Counters = append(p.Counters, rdmanl.CounterStatus{Name: fmt.Sprint("hardware_counter_", c), Enabled: true})
		}
		n := &NIC{Stats: count, Pause: &ethtool.Pause{}, PauseStats: func() ethtool.PauseStats {
			return ethtool.PauseStats{TxFrames: new(uint64(1)), RxFrames: new(uint64(2))}
		}}
		for s := range 1000 {
			n.StatNames = append(n.StatNames, fmt.Sprint("rx", s, "_packets"))
		}
		h := &HCA{Ports: map[int]*HCAPort{1: p}}
		for q := range 100 {
			h.QPs = append(h.QPs, rdmanl.QP{Number: uint32(q), Port: 1, Type: "RC", State: "RTS", Owner: rdmanl.Owner{PID: 4711}})
		}
		d := rdmanl.Device{Index: uint32(i), Name: fmt.Sprint("mlx5_", i), PortCount: 1, Protocol: "roce"}
		d.Ports = []rdmanl.Port{{DeviceIndex: d.Index, DeviceName: d.Name, Number: 1, State: "ACTIVE", PhysState: "LINK_UP"}}
		f.RDMA, f.HCAs[d.Index], f.NICs[i+2] = append(f.RDMA, d), h, n
	}
	return New(f)
}

// BenchmarkAnswer is what the Kernel itself takes for a request, without the
// client. A request to it should cost less than 10 µs.
func BenchmarkAnswer(b *testing.B) {
	k := benchKernel()
	device := func(more func(*netlink.AttributeEncoder)) []byte {
		return encode(func(ae *netlink.AttributeEncoder) {
			ae.Uint32(rdmanl.AttrDevIndex, 77)
			more(ae)
		})
	}
	none := func(*netlink.AttributeEncoder) {}
	port := func(ae *netlink.AttributeEncoder) { ae.Uint32(rdmanl.AttrPortIndex, 1) }
	pause := encodeGeneric(unix.ETHTOOL_MSG_PAUSE_GET, func(ae *netlink.AttributeEncoder) {
		nest(ae, attrHeader, func(ae *netlink.AttributeEncoder) {
			ae.Uint32(unix.ETHTOOL_A_HEADER_DEV_INDEX, 77)
			ae.Uint32(unix.ETHTOOL_A_HEADER_FLAGS, unix.ETHTOOL_FLAG_STATS)
		})
	})
	for _, bb := range []struct {
		name     string
		protocol protocol
		typ      netlink.HeaderType
		flags    netlink.HeaderFlags
		data     []byte
	}{
		{"113 counters of a port", rdma, rdmanl.CmdStatGet.HeaderType(), 0, device(port)},
		{"state of a port", rdma, rdmanl.CmdPortGet.HeaderType(), 0, device(port)},
		{"136 devices", rdma, rdmanl.CmdGet.HeaderType(), netlink.Dump, nil},
		{"100 QPs", rdma, rdmanl.CmdResQPGet.HeaderType(), netlink.Dump, device(none)},
		{"pause statistics", generic, ethtoolFamily, 0, pause},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := k.dial(bb.protocol)
			m := netlink.Message{Header: netlink.Header{Type: bb.typ, Flags: netlink.Request | bb.flags}, Data: bb.data}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Send(m); err != nil {
					b.Fatal(err)
				}
				for m, err := range s.ReceiveIter() {
					if err != nil || m.Header.Type == netlink.Error {
						b.Fatal(m, err)
					}
				}
			}
		})
	}
}

// BenchmarkIoctl is what the Kernel takes for driver statistics.
func BenchmarkIoctl(b *testing.B) {
	k := benchKernel()
	k.named = map[string]int{"eth77": 77}
	s := k.dial(generic)
	data := make([]byte, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		binary.NativeEndian.PutUint32(data, unix.ETHTOOL_GSTATS)
		binary.NativeEndian.PutUint32(data[4:], 1000)
		if err := s.ioctl("eth77", data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClient is the same as in BenchmarkAnswer, with the client.
func BenchmarkClient(b *testing.B) {
	k := benchKernel()
	b.Run("113 counters of a port", func(b *testing.B) {
		c, port := k.RDMA(), rdmanl.PortStatistics{Device: 77, Port: 1}
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := port.Read(c); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pause statistics", func(b *testing.B) {
		c, err := ethtool.New(genetlink.NewConn(k.dial(generic).conn()), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.PauseStats(77); err != nil {
				b.Fatal(err)
			}
		}
	})
}
