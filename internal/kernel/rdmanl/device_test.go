package rdmanl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
)

// mlx5 is what Linux 7.2 says of a RoCE device and its port.
func mlx5(index uint32) (device, port []byte) {
	name := fmt.Sprintf("mlx5_%d", index)
	device = attrBytes(
		u32(1, index), str(2, name), u32(3, 1), u64(4, 0x425361c36), str(5, "28.39.1002"),
		u64(6, 0x0c42a10300651234), u64(7, 0x0c42a10300651230), u8(14, 1), u8(84, 1), u8(101, 1), str(67, "roce"),
	)
	port = attrBytes(u32(1, index), str(2, name), u32(3, 1), u8(12, 4), u8(13, 5), u32(50, 1000+index), str(51, "eth"+strconv.Itoa(int(index))))
	return device, port
}

func mlx5Device(index uint32) Device {
	name := fmt.Sprintf("mlx5_%d", index)
	return Device{
		Index: index, Name: name, NodeType: "ca", NodeGUID: "0c42:a103:0065:1234", SysImageGUID: "0c42:a103:0065:1230",
		Firmware: "28.39.1002", Protocol: "roce", AdaptiveMod: true, CapFlags: 0x425361c36, UserNamed: true, PortCount: 1,
		Ports: []Port{{
			DeviceIndex: index, DeviceName: name, Number: 1, State: "ACTIVE", PhysState: "LINK_UP", LinkLayer: "Ethernet",
			NetdevIndex: 1000 + int(index), NetdevName: "eth" + strconv.Itoa(int(index)),
		}},
	}
}

func TestDecodeDevice(t *testing.T) {
	t.Parallel()
	full, _ := mlx5(3)
	tests := []struct {
		name string
		in   []byte
		want Device
		err  string
	}{
		{name: "RoCE", in: full, want: func() Device { d := mlx5Device(3); d.Ports = nil; return d }()},
		{
			name: "first device, padding, old kernel",
			in:   attrBytes(u32(1, 0), str(2, "qib0"), u32(3, 2), netlink.Attribute{Type: 0}, u64(6, 0x0011750000001234), u8(14, 4)),
			want: Device{Name: "qib0", NodeType: "rnic", NodeGUID: "0011:7500:0000:1234", PortCount: 2},
		},
		{
			name: "sub-device",
			in:   attrBytes(u32(1, 9), str(2, "smi0"), u32(3, 1), u8(14, 1), u8(84, 0), u8(99, 1), str(100, "mlx5_0"), u8(101, 0)),
			want: Device{Index: 9, Name: "smi0", NodeType: "ca", Type: "smi", Parent: "mlx5_0", PortCount: 1},
		},
		{
			name: "newer than this package",
			in:   attrBytes(u32(1, 1), str(2, "x"), u8(14, 77), u8(99, 78), nest(300, u8(1, 2))),
			want: Device{Index: 1, Name: "x", NodeType: "77", Type: "78", Unknown: map[uint16][]byte{300: attrBytes(u8(1, 2))}},
		},
		{name: "no index", in: attrBytes(str(2, "x")), err: errNoHandle.Error()},
		{name: "no name", in: attrBytes(u32(1, 1)), err: errNoHandle.Error()},
		{name: "empty", err: errNoHandle.Error()},
		{name: "cut in an attribute", in: full[:10], err: "invalid attribute"},
		{name: "index of another size", in: attrBytes(u64(1, 1), str(2, "x")), err: "attribute 1 is not a uint32"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeDevice(tt.in)
			checkError(t, err, tt.err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("device (-want +got):\n%s", diff)
			}
		})
	}
}

// checkError compares an error with a part of its text; an empty text is no
// error.
func checkError(tb testing.TB, err error, want string) {
	tb.Helper()
	switch {
	case want == "" && err != nil:
		tb.Errorf("unexpected error %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		tb.Errorf("error is %v, want %q in it", err, want)
	}
}

func TestDecodePort(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   []byte
		want Port
		err  string
	}{
		{
			name: "InfiniBand",
			in: attrBytes(u32(1, 0), str(2, "mlx5_0"), u32(3, 1), u64(4, 0x0000_0012_a651_e848), u64(8, 0xfe80000000000000),
				u32(9, 0x1b), u32(10, 1), u8(11, 3), u8(12, 4), u8(13, 5)),
			want: Port{
				DeviceName: "mlx5_0", Number: 1, State: "ACTIVE", PhysState: "LINK_UP", LinkLayer: "InfiniBand",
				LID: 27, SMLID: 1, LMC: 3, SubnetPrefix: "fe80:0000:0000:0000", CapFlags: 0x12a651e848,
			},
		},
		{
			name: "RoCE, netdev in another namespace",
			in:   attrBytes(u32(1, 7), str(2, "mlx5_7"), u32(3, 1), u8(12, 1), u8(13, 3)),
			want: Port{DeviceIndex: 7, DeviceName: "mlx5_7", Number: 1, State: "DOWN", PhysState: "DISABLED"},
		},
		{
			name: "newer than this package",
			in:   attrBytes(u32(1, 7), str(2, "x"), u32(3, 1), u8(12, 200), u8(13, 201), u8(301, 1)),
			want: Port{DeviceIndex: 7, DeviceName: "x", Number: 1, State: "200", PhysState: "201", Unknown: map[uint16][]byte{301: {1}}},
		},
		{name: "no number", in: attrBytes(u32(1, 7), str(2, "x")), err: errNoPort.Error()},
		{name: "no device", in: attrBytes(u32(3, 1)), err: errNoHandle.Error()},
		{name: "state of another size", in: attrBytes(u32(1, 7), str(2, "x"), u32(3, 1), u32(12, 4)), err: "attribute 12 is not a uint8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := decodePort(tt.in)
			checkError(t, err, tt.err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("port (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinkLayer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		protocol string
		port     Port
		want     string
	}{
		{"RoCE", "roce", Port{Number: 2}, "Ethernet"},
		{"iWARP", "iw", Port{Number: 1}, "Ethernet"},
		{"InfiniBand", "ib", Port{Number: 1}, "InfiniBand"},
		{"Omni-Path", "opa", Port{Number: 1}, "InfiniBand"},
		{"mixed card, InfiniBand first", "ib", Port{Number: 2}, ""},
		{"mixed card, Ethernet first", "roce", Port{Number: 2, LinkLayer: "InfiniBand"}, "InfiniBand"},
		{"old kernel", "", Port{Number: 1}, ""},
		{"newer than this package", "x", Port{Number: 1}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := linkLayer(tt.protocol, tt.port); got != tt.want {
				t.Errorf("link layer %q, want %q", got, tt.want)
			}
		})
	}
}

// fleet plays a kernel with these devices, by index; it answers GET and
// PORT_GET.
type fleet map[uint32][2][]byte

func (f fleet) answer(request netlink.Message) ([]netlink.Message, error) {
	var index uint32
	if len(request.Data) > 0 {
		index = binary.NativeEndian.Uint32(request.Data[4:])
	}
	device, ok := f[index]
	switch c, _ := CommandOf(request.Header.Type); {
	case c == CmdGet && len(request.Data) == 0:
		var parts [][]byte
		for _, i := range slices.Sorted(maps.Keys(f)) {
			parts = append(parts, f[i][0])
		}
		return dump(parts...)(request)
	case c == CmdGet && ok:
		return dump(device[0])(request)
	case c == CmdPortGet && ok:
		return dump(device[1])(request)
	case c == CmdPortGet:
		return failingDump(syscall.EINVAL)(request)
	default:
		return fail(syscall.EINVAL)(request)
	}
}

func TestDevicesWithPorts(t *testing.T) {
	t.Parallel()
	f := fleet{}
	var want []Device
	for i := range uint32(1000) {
		device, port := mlx5(i)
		f[i] = [2][]byte{device, port}
		want = append(want, mlx5Device(i))
	}
	got, err := kernel(t, f.answer).DevicesWithPorts()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

func TestDevicesWithPortsVanishing(t *testing.T) {
	t.Parallel()
	f := fleet{}
	for i := range uint32(3) {
		device, port := mlx5(i)
		f[i] = [2][]byte{device, port}
	}
	got, err := kernel(t, func(request netlink.Message) ([]netlink.Message, error) {
		messages, err := f.answer(request)
		delete(f, 1) // once all devices are listed
		return messages, err
	}).DevicesWithPorts()
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]Device{mlx5Device(0), mlx5Device(2)}, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// TestDevicesWithPortsReturning has a device away when its ports are asked for,
// and back when it is asked for itself.
func TestDevicesWithPortsReturning(t *testing.T) {
	t.Parallel()
	f := fleet{}
	var want []Device
	for i := range uint32(3) {
		device, port := mlx5(i)
		f[i] = [2][]byte{device, port}
		want = append(want, mlx5Device(i))
	}
	moving, requests := f[1], 0
	got, err := kernel(t, func(request netlink.Message) ([]netlink.Message, error) {
		messages, err := f.answer(request)
		switch requests++; requests {
		case 1: // all devices
			delete(f, 1)
		case 3: // ports of device 1, after those of device 0
			f[1] = moving
		}
		return messages, err
	}).DevicesWithPorts()
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// TestDevicesWithPortsBadPort has a port that the dump cannot pass.
func TestDevicesWithPortsBadPort(t *testing.T) {
	t.Parallel()
	list := exchange{message(0x1401, netlink.Dump), dump(
		attrBytes(u32(1, 0), str(2, "bad0"), u32(3, 3), str(67, "roce")),
		attrBytes(u32(1, 1), str(2, "good0"), u32(3, 1), str(67, "iw")),
		attrBytes(u32(1, 2)), // no name
	)}
	port := func(device, number uint32, name string) []byte {
		return attrBytes(u32(1, device), str(2, name), u32(3, number), u8(12, 4), u8(13, 5))
	}
	got, err := script(t, list,
		exchange{message(0x1405, netlink.Dump, u32(1, 0)), dump()},
		exchange{message(0x1405, 0, u32(1, 0), u32(3, 1)), fail(syscall.EIO)},
		exchange{message(0x1405, 0, u32(1, 0), u32(3, 2)), reply(u32(1, 0), str(2, "bad0"), u32(3, 2), u8(12, 4), u8(13, 5))},
		exchange{message(0x1405, 0, u32(1, 0), u32(3, 3)), fail(syscall.ENODEV)}, // lost its netdev
		exchange{message(0x1405, netlink.Dump, u32(1, 1)), dump(port(1, 1, "good0"))},
	).DevicesWithPorts()
	want := []Device{
		{Name: "bad0", Protocol: "roce", PortCount: 3, Ports: []Port{
			{DeviceName: "bad0", Number: 2, State: "ACTIVE", PhysState: "LINK_UP", LinkLayer: "Ethernet"},
		}},
		{Index: 1, Name: "good0", Protocol: "iw", PortCount: 1, Ports: []Port{
			{DeviceIndex: 1, DeviceName: "good0", Number: 1, State: "ACTIVE", PhysState: "LINK_UP", LinkLayer: "Ethernet"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	checkError(t, err, "rdma netlink PORT_GET device 0 port 1: input/output error")
	checkError(t, err, "rdma netlink GET: reply without DEV_INDEX or DEV_NAME")
	if errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v tells of the port that is not there", err)
	}
}

func TestDevicesWithPortsHostileCount(t *testing.T) {
	t.Parallel()
	requests := 0
	f := fleet{0: {attrBytes(u32(1, 0), str(2, "x"), u32(3, 0xffffffff)), attrBytes(u32(1, 0), str(2, "x"), u32(3, 1))}}
	_, _ = kernel(t, func(request netlink.Message) ([]netlink.Message, error) {
		requests++
		return f.answer(request)
	}).DevicesWithPorts()
	if limit := 3 * maxPorts; requests > limit {
		t.Errorf("%d requests, want at most %d", requests, limit)
	}
}

// encodeDevice is the inverse of decodeDevice.
func encodeDevice(d Device) []byte {
	attrs := []netlink.Attribute{
		u32(1, d.Index), str(2, d.Name), u32(3, uint32(d.PortCount)), u64(4, d.CapFlags), str(5, d.Firmware),
		str(67, d.Protocol), str(100, d.Parent), u8(84, flag(d.AdaptiveMod)), u8(101, flag(d.UserNamed)),
	}
	attrs = append(attrs, guidAttr(6, d.NodeGUID)...)
	attrs = append(attrs, guidAttr(7, d.SysImageGUID)...)
	attrs = append(attrs, nameAttr(14, nodeTypes, d.NodeType)...)
	attrs = append(attrs, nameAttr(99, deviceTypes, d.Type)...)
	return attrBytes(append(attrs, unknownAttrs(d.Unknown)...)...)
}

// encodePort is the inverse of decodePort.
func encodePort(p Port) []byte {
	attrs := []netlink.Attribute{
		u32(1, p.DeviceIndex), str(2, p.DeviceName), u32(3, uint32(p.Number)), u32(50, uint32(p.NetdevIndex)), str(51, p.NetdevName),
		u32(9, p.LID), u32(10, p.SMLID), u8(11, p.LMC), u64(4, p.CapFlags),
	}
	attrs = append(attrs, guidAttr(8, p.SubnetPrefix)...)
	attrs = append(attrs, nameAttr(12, portStates, p.State)...)
	attrs = append(attrs, nameAttr(13, physStates, p.PhysState)...)
	return attrBytes(append(attrs, unknownAttrs(p.Unknown)...)...)
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func guidAttr(t uint16, guid string) []netlink.Attribute {
	if guid == "" {
		return nil
	}
	v, err := strconv.ParseUint(strings.ReplaceAll(guid, ":", ""), 16, 64)
	if err != nil {
		panic(err)
	}
	return []netlink.Attribute{u64(t, v)}
}

func nameAttr(t uint16, names map[uint32]string, name string) []netlink.Attribute {
	if name == "" {
		return nil
	}
	for n, s := range names {
		if s == name {
			return []netlink.Attribute{u8(t, uint8(n))}
		}
	}
	n, err := strconv.ParseUint(name, 10, 8)
	if err != nil {
		panic(err)
	}
	return []netlink.Attribute{u8(t, uint8(n))}
}

func unknownAttrs(unknown map[uint16][]byte) []netlink.Attribute {
	var attrs []netlink.Attribute
	for _, t := range slices.Sorted(maps.Keys(unknown)) {
		attrs = append(attrs, netlink.Attribute{Type: t, Data: unknown[t]})
	}
	return attrs
}

// FuzzDecodeDevice checks that there is an error or a device, and that a device
// survives encoding.
func FuzzDecodeDevice(f *testing.F) {
	full, _ := mlx5(3)
	f.Add(full)
	f.Add(full[:len(full)-3])
	f.Add(attrBytes(u32(1, 0), str(2, "x"), u8(14, 77), u8(300, 1), netlink.Attribute{Type: 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDevice(b)
		if err != nil {
			if diff := cmp.Diff(Device{}, d); diff != "" {
				t.Fatalf("error %v and a value: %s", err, diff)
			}
			return
		}
		again, err := decodeDevice(encodeDevice(d))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("after encoding (-want +got):\n%s", diff)
		}
	})
}

// FuzzDecodePort is as FuzzDecodeDevice.
func FuzzDecodePort(f *testing.F) {
	_, port := mlx5(3)
	f.Add(port)
	f.Add(port[:len(port)-3])
	f.Add(attrBytes(u32(1, 0), str(2, "x"), u32(3, 1), u64(8, 0xfe80<<48), u8(12, 99), u8(301, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodePort(b)
		if err != nil {
			if diff := cmp.Diff(Port{}, p); diff != "" {
				t.Fatalf("error %v and a value: %s", err, diff)
			}
			return
		}
		again, err := decodePort(encodePort(p))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("after encoding (-want +got):\n%s", diff)
		}
	})
}

// BenchmarkDevices decodes a dump of 8 PFs and 128 VFs, as the kernel sends it.
func BenchmarkDevices(b *testing.B) {
	f := fleet{}
	for i := range uint32(136) {
		device, port := mlx5(i)
		f[i] = [2][]byte{device, port}
	}
	replies, err := f.answer(message(0x1401, netlink.Dump))
	if err != nil {
		b.Fatal(err)
	}
	replies = replies[:len(replies)-1] // the end of the dump
	b.ReportAllocs()
	for b.Loop() {
		devices, err := decodeEach(request{}, replies, decodeDevice)
		if err != nil || len(devices) != 136 {
			b.Fatal(len(devices), err)
		}
	}
}

// BenchmarkDevicesWithPorts adds the exchange with a simulated kernel.
func BenchmarkDevicesWithPorts(b *testing.B) {
	f := fleet{}
	for i := range uint32(136) {
		device, port := mlx5(i)
		f[i] = [2][]byte{device, port}
	}
	c := kernel(b, f.answer)
	b.ReportAllocs()
	for b.Loop() {
		if devices, err := c.DevicesWithPorts(); err != nil || len(devices) != 136 {
			b.Fatal(len(devices), err)
		}
	}
}
