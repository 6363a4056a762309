package rdmanl

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
)

func TestSystem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   []netlink.Attribute
		want System
		err  string
	}{
		{
			name: "Linux 7.2, shared",
			in:   []netlink.Attribute{u8(66, 1), u8(96, 0), u8(103, 1), u8(93, 1)},
			want: System{NetNSMode: "shared", CopyOnFork: new(true), PrivilegedQKey: new(false), MonitorSupport: new(true)},
		},
		{name: "Linux 5.2, exclusive", in: []netlink.Attribute{u8(66, 0)}, want: System{NetNSMode: "exclusive"}},
		{name: "newer than this package", in: []netlink.Attribute{u8(66, 2), u8(300, 1)}, want: System{NetNSMode: "2"}},
		{name: "mode of another size", in: []netlink.Attribute{u32(66, 1)}, err: "attribute 66 is not a uint8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := script(t, exchange{message(0x1406, 0), reply(tt.in...)}).System()
			checkError(t, err, tt.err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("system (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzDecodeSystem(f *testing.F) {
	f.Add(attrBytes(u8(66, 1), u8(96, 0), u8(103, 1), u8(93, 1)))
	f.Add(attrBytes(u8(66, 7), u32(93, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeSystem(b)
		if err != nil && s != (System{}) {
			t.Errorf("error %v and a value: %+v", err, s)
		}
	})
}

func TestSetNetNSMode(t *testing.T) {
	t.Parallel()
	set := func(mode uint8) netlink.Message { return message(0x1407, netlink.Acknowledge, u8(66, mode)) }
	tests := []struct {
		name      string
		mode      string
		exchanges []exchange
		err       string
	}{
		{name: "shared", mode: "shared", exchanges: []exchange{{set(1), fail(0)}}},
		{name: "exclusive", mode: "exclusive", exchanges: []exchange{{set(0), fail(0)}}},
		{
			name: "with pods", mode: "exclusive", exchanges: []exchange{{set(0), fail(syscall.EBUSY)}},
			err: "rdma netlink SYS_SET: device or resource busy: other network namespaces exist; set the parameter netns_mode of ib_core at boot instead",
		},
		{name: "typing error", mode: "exlusive", err: `RDMA netns mode "exlusive": want "shared" or "exclusive"`},
		{name: "number", mode: "1", err: `RDMA netns mode "1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkError(t, script(t, tt.exchanges...).SetNetNSMode(tt.mode), tt.err)
		})
	}
}

func TestMoveToNetNS(t *testing.T) {
	t.Parallel()
	move := message(0x1402, netlink.Acknowledge, u32(1, 3), u32(68, 9))
	system := func(mode uint8) exchange { return exchange{message(0x1406, 0), reply(u8(66, mode))} }
	tests := []struct {
		name      string
		exchanges []exchange
		is        error
		err       string
	}{
		{name: "moved", exchanges: []exchange{{move, fail(0)}}},
		{
			name: "unprivileged", exchanges: []exchange{{move, fail(syscall.EPERM)}},
			is: fs.ErrPermission, err: "rdma netlink SET device 3: operation not permitted: CAP_NET_ADMIN in the initial user namespace is needed",
		},
		{
			name: "shared mode", exchanges: []exchange{{move, fail(syscall.EOPNOTSUPP)}, system(1)},
			is: ErrNotSupported, err: `network namespaces share devices; moving needs the mode "exclusive"`,
		},
		{
			name: "driver that cannot", exchanges: []exchange{{move, fail(syscall.EOPNOTSUPP)}, system(0)},
			is: ErrNotSupported, err: "the driver cannot take a device away from its users",
		},
		{
			name: "unknown which", exchanges: []exchange{{move, fail(syscall.EOPNOTSUPP)}, {message(0x1406, 0), fail(syscall.ENOMEM)}},
			is: ErrNotSupported, err: "network namespaces share devices, or the driver cannot",
		},
		{
			name: "thread elsewhere", exchanges: []exchange{{move, fail(syscall.ENODEV)}},
			is: fs.ErrNotExist, err: "the calling thread is in another network namespace than the device",
		},
		{
			name: "device elsewhere", exchanges: []exchange{{move, fail(syscall.EINVAL)}, {message(0x1401, 0, u32(1, 3)), fail(syscall.EINVAL)}},
			is: fs.ErrNotExist, err: "no such device in the socket's network namespace",
		},
		{
			name: "descriptor of something else", exchanges: []exchange{{move, fail(syscall.EINVAL)}, oneDevice()},
			is: syscall.EINVAL, err: "file descriptor 9 is not that of a network namespace",
		},
		{
			name: "closed descriptor", exchanges: []exchange{{move, fail(syscall.EBADF)}},
			is: syscall.EBADF, err: "file descriptor 9 is not that of a network namespace",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := script(t, tt.exchanges...).MoveToNetNS(3, 9)
			checkError(t, err, tt.err)
			if !errors.Is(err, tt.is) {
				t.Errorf("error %v is not %v", err, tt.is)
			}
		})
	}
}
