package rdmanl

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
)

// event is a message to NotifyGroup.
func event(attrs ...netlink.Attribute) netlink.Message {
	return netlink.Message{Header: netlink.Header{Type: 0x141c}, Data: attrBytes(attrs...)}
}

// monitor returns a Monitor that receives what each of the functions returns.
func monitor(tb testing.TB, receives ...func() ([]netlink.Message, error)) *Monitor {
	tb.Helper()
	next := 0
	m := NewMonitor(nltest.Dial(func([]netlink.Message) ([]netlink.Message, error) {
		if next == len(receives) {
			return nil, os.NewSyscallError("recvmsg", syscall.EBADF)
		}
		next++
		return receives[next-1]()
	}))
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

func messages(messages ...netlink.Message) func() ([]netlink.Message, error) {
	return func() ([]netlink.Message, error) { return messages, nil }
}

func TestMonitorReceive(t *testing.T) {
	t.Parallel()
	other := netlink.Message{Header: netlink.Header{Type: 0x1401}, Data: attrBytes(u8(102, 0))}
	m := monitor(t,
		messages(event(u32(1, 0), str(2, "rxe0"), u8(102, 0))),
		messages(event(u32(1, 0), str(2, "rxe0"), u32(3, 1), u32(50, 7), str(51, "eth0"), u8(102, 2))),
		messages(other), // is not returned
		messages(event(u32(50, 7), str(51, "rail0"), u8(102, 5)), other, event(u32(1, 0), str(2, "rxe1"), u8(102, 4))),
		messages(event(u32(1, 0), str(2, "rxe1"), u32(3, 1), u8(102, 3)), event(str(2, "x")), event(u8(300, 1), u8(102, 99))),
		func() ([]netlink.Message, error) { return nil, os.NewSyscallError("recvmsg", syscall.ENOBUFS) },
		messages(event(u32(1, 0), str(2, "rxe1"), u8(102, 1))),
	)
	steps := []struct {
		name string
		want []Event
		err  string
	}{
		{name: "new device", want: []Event{{Kind: "REGISTER", DeviceName: "rxe0"}}},
		{name: "its netdev", want: []Event{{Kind: "NETDEV_ATTACH", DeviceName: "rxe0", Port: 1, NetdevIndex: 7, NetdevName: "eth0"}}},
		{name: "renames", want: []Event{{Kind: "NETDEV_RENAME", NetdevIndex: 7, NetdevName: "rail0"}, {Kind: "RENAME", DeviceName: "rxe1"}}},
		{
			name: "one that cannot be read, one newer than this package",
			want: []Event{{Kind: "NETDEV_DETACH", DeviceName: "rxe1", Port: 1}, {Kind: "99", Unknown: map[uint16][]byte{300: {1}}}},
			err:  "rdma netlink MONITOR: event without EVENT_TYPE",
		},
		{name: "overrun", err: "no buffer space available: events were lost"},
		{name: "after it", want: []Event{{Kind: "UNREGISTER", DeviceName: "rxe1"}}},
	}
	for _, s := range steps {
		got, err := m.Receive()
		checkError(t, err, s.err)
		if diff := equal(s.want, got); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", s.name, diff)
		}
		if s.name == "overrun" && !errors.Is(err, ErrEventsLost) {
			t.Errorf("error %v is not ErrEventsLost", err)
		}
	}
}

func TestMonitorClosed(t *testing.T) {
	t.Parallel()
	m := monitor(t)
	if _, err := m.Receive(); errors.Is(err, fs.ErrClosed) {
		t.Errorf("error %v is fs.ErrClosed before Close", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Receive(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("error %v is not fs.ErrClosed", err)
	}
}

func TestMonitored(t *testing.T) {
	t.Parallel()
	system := message(0x1406, 0)
	tests := []struct {
		name   string
		system exchange
		err    string
	}{
		{name: "Linux 6.12", system: exchange{system, reply(u8(66, 1), u8(103, 1))}},
		{name: "older", system: exchange{system, reply(u8(66, 1))}, err: "rdma netlink MONITOR: operation not supported: needs Linux 6.12 or newer"},
		{name: "switched off", system: exchange{system, reply(u8(66, 1), u8(103, 0))}, err: "needs Linux 6.12 or newer"},
		{name: "very old", system: exchange{system, fail(syscall.EINVAL)}, err: "rdma netlink SYS_GET: invalid argument: needs Linux 5.2 or newer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := monitored(script(t, tt.system))
			checkError(t, err, tt.err)
			if errors.Is(err, ErrNotSupported) != (tt.err != "") {
				t.Errorf("error %v: is ErrNotSupported: %v", err, errors.Is(err, ErrNotSupported))
			}
		})
	}
}

// FuzzDecodeEvent checks that there is an error or an event, and that unknown
// attributes are kept.
func FuzzDecodeEvent(f *testing.F) {
	f.Add(attrBytes(u32(1, 0), str(2, "rxe0"), u32(3, 1), u32(50, 7), str(51, "eth0"), u8(102, 2)))
	f.Add(attrBytes(u8(102, 99), u8(300, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEvent(b)
		if (err != nil) != (e.Kind == "") {
			t.Fatalf("error %v, value %+v", err, e)
		}
		more, err := decodeEvent(append(b[:len(b):len(b)], attrBytes(u8(0x1fff, 7))...))
		if len(b)%4 == 0 && e.Kind != "" && (err != nil || len(more.Unknown[0x1fff]) != 1) {
			t.Errorf("error %v, unknown attribute lost: %+v", err, more)
		}
	})
}
