package rdmanl

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
)

func TestCharDevice(t *testing.T) {
	t.Parallel()
	uverbs := message(0x140f, 0, u32(1, 3), str(69, "uverbs"))
	tests := []struct {
		name      string
		kind      string
		port      int
		exchanges []exchange
		want      CharDevice
		err       string
	}{
		{
			name: "uverbs", kind: "uverbs",
			exchanges: []exchange{{uverbs, reply(u32(73, 2), u64(72, 231<<8|192), u64(71, 1), str(70, "uverbs0"))}},
			want:      CharDevice{Name: "uverbs0", Major: 231, Minor: 192, ABI: 1, DriverID: new(uint32(2))},
		},
		{
			name: "dynamic major and large minor", kind: "uverbs",
			exchanges: []exchange{{uverbs, reply(u64(72, 0x3451f09a), u64(71, 1), str(70, "uverbs700"))}},
			want:      CharDevice{Name: "uverbs700", Major: 0x1f0, Minor: 0x3459a, ABI: 1},
		},
		{
			name: "umad", kind: "umad", port: 2,
			exchanges: []exchange{{
				message(0x140f, 0, u32(1, 3), u32(3, 2), str(69, "umad")), reply(u64(72, 231<<8|1), u64(71, 5), str(70, "umad1")),
			}},
			want: CharDevice{Name: "umad1", Major: 231, Minor: 1, ABI: 5},
		},
		{
			name: "issm", kind: "issm", port: 1,
			exchanges: []exchange{{
				message(0x140f, 0, u32(1, 3), u32(3, 1), str(69, "issm")), reply(u64(72, 231<<8|64), u64(71, 5), str(70, "issm0")),
			}},
			want: CharDevice{Name: "issm0", Major: 231, Minor: 64, ABI: 5},
		},
		{
			name: "rdma_cm", kind: "rdma_cm",
			exchanges: []exchange{{message(0x140f, 0, str(69, "rdma_cm")), reply(u64(72, 10<<8|58), u64(71, 4), str(70, "rdma_cm"))}},
			want:      CharDevice{Name: "rdma_cm", Major: 10, Minor: 58, ABI: 4},
		},
		{
			name: "none", kind: "uverbs", exchanges: []exchange{{uverbs, fail(syscall.EOPNOTSUPP)}},
			err: "there is no uverbs: its module is not loaded, or the device does not offer it",
		},
		{name: "number missing", kind: "uverbs", exchanges: []exchange{{uverbs, reply(str(70, "uverbs0"))}}, err: errNoCharDev.Error()},
		{name: "uverbs of a port", kind: "uverbs", port: 1, err: `character device "uverbs" belongs to a device: port 1: want 0`},
		{name: "umad of a device", kind: "umad", err: `character device "umad" belongs to a port: port 0: want 1 or more`},
		{name: "unknown kind", kind: "ucm", err: `character device "ucm": want "uverbs"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := script(t, tt.exchanges...).CharDevice(tt.kind, 3, tt.port)
			checkError(t, err, tt.err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("character device (-want +got):\n%s", diff)
			}
			if tt.name == "none" && !errors.Is(err, ErrNotSupported) {
				t.Errorf("error %v is not ErrNotSupported", err)
			}
		})
	}
}

func TestMajorMinor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		dev          uint64
		major, minor uint32
	}{
		{"first uverbs", 0xe7c0, 231, 192},
		{"largest minor below a byte", 0x1ff, 1, 255},
		{"minor above a byte", 0x00100100, 1, 256},
		{"largest", 0xffffffff, 4095, 1<<20 - 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if major, minor := majorMinor(tt.dev); major != tt.major || minor != tt.minor {
				t.Errorf("majorMinor(%#x) = %d:%d, want %d:%d", tt.dev, major, minor, tt.major, tt.minor)
			}
		})
	}
}

// FuzzMajorMinor checks that encoding restores the 32 bits that are used.
func FuzzMajorMinor(f *testing.F) {
	f.Add(uint64(0xe7c0))
	f.Add(uint64(0xffffffff))
	f.Fuzz(func(t *testing.T, dev uint64) {
		major, minor := majorMinor(dev)
		if again := minor&0xff | major<<8 | minor&^0xff<<12; again != uint32(dev) {
			t.Errorf("majorMinor(%#x) = %d:%d, which encodes to %#x", dev, major, minor, again)
		}
	})
}

func FuzzDecodeCharDevice(f *testing.F) {
	f.Add(attrBytes(u32(73, 2), u64(72, 231<<8|192), u64(71, 1), str(70, "uverbs0")))
	f.Add(attrBytes(str(70, "uverbs0"), netlink.Attribute{Type: 72}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeCharDevice(b)
		if (err != nil) != (d == CharDevice{}) {
			t.Errorf("error %v, value %+v", err, d)
		}
	})
}
