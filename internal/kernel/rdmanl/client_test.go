package rdmanl

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
)

// exchange is a request that a client has to make, and what the kernel answers.
type exchange struct {
	want  netlink.Message // type, flags without NLM_F_REQUEST, attributes
	reply func(request netlink.Message) ([]netlink.Message, error)
}

// script returns a Client whose kernel expects the exchanges, in this order.
func script(tb testing.TB, exchanges ...exchange) *Client {
	tb.Helper()
	next := 0
	tb.Cleanup(func() {
		if next < len(exchanges) {
			tb.Errorf("%d requests were made, want %d", next, len(exchanges))
		}
	})
	return kernel(tb, func(request netlink.Message) ([]netlink.Message, error) {
		if next == len(exchanges) {
			tb.Errorf("request %d: %v is one too many", next, request)
			return fail(syscall.EINVAL)(request)
		}
		e := exchanges[next]
		next++
		got := netlink.Message{
			Header: netlink.Header{Type: request.Header.Type, Flags: request.Header.Flags &^ netlink.Request},
			Data:   request.Data,
		}
		if diff := cmp.Diff(e.want, got); diff != "" || request.Header.Flags&netlink.Request == 0 {
			tb.Errorf("request %d (-want +got):\n%s", next, diff)
		}
		return e.reply(request)
	})
}

// kernel returns a Client that answer plays the kernel for.
func kernel(tb testing.TB, answer func(netlink.Message) ([]netlink.Message, error)) *Client {
	tb.Helper()
	c := New(nltest.Dial(func(requests []netlink.Message) ([]netlink.Message, error) {
		return answer(requests[0])
	}))
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// message is an expected request; numbers are written out, so that a wrong
// constant does not prove itself.
func message(t netlink.HeaderType, flags netlink.HeaderFlags, attrs ...netlink.Attribute) netlink.Message {
	return netlink.Message{Header: netlink.Header{Type: t, Flags: flags}, Data: nltest.MustMarshalAttributes(attrs)}
}

func u8(t uint16, v uint8) netlink.Attribute { return netlink.Attribute{Type: t, Data: []byte{v}} }

func u32(t uint16, v uint32) netlink.Attribute {
	return netlink.Attribute{Type: t, Data: binary.NativeEndian.AppendUint32(nil, v)}
}

func u64(t uint16, v uint64) netlink.Attribute {
	return netlink.Attribute{Type: t, Data: binary.NativeEndian.AppendUint64(nil, v)}
}

func str(t uint16, s string) netlink.Attribute {
	return netlink.Attribute{Type: t, Data: append([]byte(s), 0)}
}

// nest is nla_nest_start; the kernel's older tables are without the flag, which
// is nla_nest_start_noflag.
func nest(t uint16, attrs ...netlink.Attribute) netlink.Attribute {
	return netlink.Attribute{Type: t | netlink.Nested, Data: attrBytes(attrs...)}
}

func nestNoFlag(t uint16, attrs ...netlink.Attribute) netlink.Attribute {
	return netlink.Attribute{Type: t, Data: attrBytes(attrs...)}
}

func attrBytes(attrs ...netlink.Attribute) []byte { return nltest.MustMarshalAttributes(attrs) }

// reply answers with one message, as a doit handler does.
func reply(attrs ...netlink.Attribute) func(netlink.Message) ([]netlink.Message, error) {
	return func(request netlink.Message) ([]netlink.Message, error) {
		request.Header.Flags = 0
		request.Data = attrBytes(attrs...)
		return []netlink.Message{request}, nil
	}
}

// dump answers with a multi-part message of these parts.
func dump(parts ...[]byte) func(netlink.Message) ([]netlink.Message, error) {
	return failingDump(0, parts...)
}

// failingDump answers with the parts, and then with the error number in the
// message that ends a dump, as netlink_dump_done does.
func failingDump(errno syscall.Errno, parts ...[]byte) func(netlink.Message) ([]netlink.Message, error) {
	return func(request netlink.Message) ([]netlink.Message, error) {
		var messages []netlink.Message
		m := request
		m.Header.Flags = netlink.Multi
		for _, part := range parts {
			m.Data = part
			messages = append(messages, m)
		}
		m.Header.Type = netlink.Done
		m.Data = binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))
		return append(messages, m), nil
	}
}

// fail answers with an error number, as netlink_ack does.
func fail(errno syscall.Errno) func(netlink.Message) ([]netlink.Message, error) {
	return func(request netlink.Message) ([]netlink.Message, error) {
		return nltest.Error(int(errno), []netlink.Message{request})
	}
}

// failSaying answers with an error number and the kernel's own words.
func failSaying(errno syscall.Errno, words string) func(netlink.Message) ([]netlink.Message, error) {
	return func(request netlink.Message) ([]netlink.Message, error) {
		m := request
		m.Header.Type = netlink.Error
		m.Header.Flags = netlink.Capped | netlink.AcknowledgeTLVs
		m.Data = binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))
		m.Data = binary.NativeEndian.AppendUint32(m.Data, 16) // the request's header, alone
		m.Data = append(m.Data, make([]byte, 12)...)
		m.Data = append(m.Data, attrBytes(str(1, words))...) // NLMSGERR_ATTR_MSG
		return []netlink.Message{m}, nil
	}
}

// oneDevice answers GET of device 3, which has two ports.
func oneDevice() exchange {
	return exchange{message(0x1401, 0, u32(1, 3)), reply(u32(1, 3), str(2, "mlx5_3"), u32(3, 2))}
}

// calls has each method that makes one request about device 3 and port 2.
var calls = []struct {
	name  string
	want  netlink.Message
	about string // how errors name it
	call  func(*Client) error
}{
	{
		"Devices", message(0x1401, netlink.Dump), "GET",
		func(c *Client) error { _, err := c.Devices(); return err },
	},
	{
		"Device", message(0x1401, 0, u32(1, 3)), "GET device 3",
		func(c *Client) error { _, err := c.Device(3); return err },
	},
	{
		"Ports", message(0x1405, netlink.Dump, u32(1, 3)), "PORT_GET device 3",
		func(c *Client) error { _, err := c.Ports(3); return err },
	},
	{
		"Port", message(0x1405, 0, u32(1, 3), u32(3, 2)), "PORT_GET device 3 port 2",
		func(c *Client) error { _, err := c.Port(3, 2); return err },
	},
	{
		"System", message(0x1406, 0), "SYS_GET",
		func(c *Client) error { _, err := c.System(); return err },
	},
	{
		"SetNetNSMode", message(0x1407, netlink.Acknowledge, u8(66, 0)), "SYS_SET",
		func(c *Client) error { return c.SetNetNSMode("exclusive") },
	},
	{
		"MoveToNetNS", message(0x1402, netlink.Acknowledge, u32(1, 3), u32(68, 9)), "SET device 3",
		func(c *Client) error { return c.MoveToNetNS(3, 9) },
	},
	{
		"Statistics", message(0x1411, 0, u32(1, 3), u32(3, 2)), "STAT_GET device 3 port 2",
		func(c *Client) error { _, err := c.Statistics(3, 2); return err },
	},
	{
		"CounterStatuses", message(0x1418, 0, u32(1, 3), u32(3, 2)), "STAT_GET_STATUS device 3 port 2",
		func(c *Client) error { _, err := c.CounterStatuses(3, 2); return err },
	},
	{
		"CounterMode", message(0x1411, 0, u32(1, 3), u32(3, 2), u32(75, 19), u32(74, 0)), "STAT_GET device 3 port 2",
		func(c *Client) error { _, err := c.CounterMode(3, 2); return err },
	},
	{
		"QPCounters", message(0x1411, netlink.Dump, u32(1, 3), u32(3, 2), u32(75, 19)), "STAT_GET device 3 port 2",
		func(c *Client) error { _, err := c.QPCounters(3, 2); return err },
	},
	{
		"Resources", message(0x1409, 0, u32(1, 3)), "RES_GET device 3",
		func(c *Client) error { _, err := c.Resources(3); return err },
	},
	{
		"Contexts", message(0x1416, netlink.Dump, u32(1, 3)), "RES_CTX_GET device 3",
		func(c *Client) error { _, err := c.Contexts(3); return err },
	},
	{
		"PDs", message(0x140e, netlink.Dump, u32(1, 3)), "RES_PD_GET device 3",
		func(c *Client) error { _, err := c.PDs(3); return err },
	},
	{
		"MRs", message(0x140d, netlink.Dump, u32(1, 3)), "RES_MR_GET device 3",
		func(c *Client) error { _, err := c.MRs(3); return err },
	},
	{
		"CQs", message(0x140c, netlink.Dump, u32(1, 3)), "RES_CQ_GET device 3",
		func(c *Client) error { _, err := c.CQs(3); return err },
	},
	{
		"CMIDs", message(0x140b, netlink.Dump, u32(1, 3)), "RES_CM_ID_GET device 3",
		func(c *Client) error { _, err := c.CMIDs(3); return err },
	},
	{
		"QPs", message(0x140a, netlink.Dump, u32(1, 3)), "RES_QP_GET device 3",
		func(c *Client) error { _, err := c.QPs(3); return err },
	},
	{
		"SRQs", message(0x1417, netlink.Dump, u32(1, 3)), "RES_SRQ_GET device 3",
		func(c *Client) error { _, err := c.SRQs(3); return err },
	},
	{
		"CharDevice uverbs", message(0x140f, 0, u32(1, 3), str(69, "uverbs")), "GET_CHARDEV device 3",
		func(c *Client) error { _, err := c.CharDevice("uverbs", 3, 0); return err },
	},
	{
		"CharDevice umad", message(0x140f, 0, u32(1, 3), u32(3, 2), str(69, "umad")), "GET_CHARDEV device 3 port 2",
		func(c *Client) error { _, err := c.CharDevice("umad", 3, 2); return err },
	},
	{
		"CharDevice rdma_cm", message(0x140f, 0, str(69, "rdma_cm")), "GET_CHARDEV",
		func(c *Client) error { _, err := c.CharDevice("rdma_cm", 3, 2); return err },
	},
}

// TestErrors crosses the error numbers with the calls.
func TestErrors(t *testing.T) {
	t.Parallel()
	numbers := []struct {
		errno syscall.Errno
		is    error // beside the number
	}{
		{syscall.ENODEV, fs.ErrNotExist},
		{syscall.ENXIO, fs.ErrNotExist},
		{syscall.EPERM, fs.ErrPermission},
		{syscall.EOPNOTSUPP, ErrNotSupported},
		{syscall.EBUSY, syscall.EBUSY},
		{syscall.ENOMEM, syscall.ENOMEM},
	}
	for _, call := range calls {
		for _, n := range numbers {
			t.Run(call.name+" "+n.errno.Error(), func(t *testing.T) {
				t.Parallel()
				answer := fail(n.errno)
				if call.want.Header.Flags&netlink.Dump == netlink.Dump {
					answer = failingDump(n.errno)
				}
				exchanges := []exchange{{call.want, answer}}
				if call.name == "MoveToNetNS" && n.errno == syscall.EOPNOTSUPP { // asks why
					exchanges = append(exchanges, exchange{message(0x1406, 0), fail(n.errno)})
				}
				err := call.call(script(t, exchanges...))
				e, ok := errors.AsType[*Error](err)
				if !ok {
					t.Fatalf("error is %#v, want an *Error", err)
				}
				if !errors.Is(err, n.errno) || !errors.Is(err, n.is) {
					t.Errorf("error %v is not %v and %v", err, n.errno, n.is)
				}
				if prefix := "rdma netlink " + call.about + ": " + n.errno.Error(); !strings.HasPrefix(e.Error(), prefix) {
					t.Errorf("error %q does not begin with %q", e, prefix)
				}
			})
		}
	}
}

// TestInvalid is about EINVAL, which takes a second request to understand, and
// a third where the device could have been away for a moment.
func TestInvalid(t *testing.T) {
	t.Parallel()
	noDevice := exchange{message(0x1401, 0, u32(1, 3)), fail(syscall.EINVAL)}
	noPort := exchange{message(0x1401, 0, u32(1, 3)), reply(u32(1, 3), str(2, "mlx5_3"), u32(3, 1))}
	broken := exchange{message(0x1401, 0, u32(1, 3)), fail(syscall.ENOMEM)}
	unsupported := []string{
		"Devices", "System", "SetNetNSMode", "Statistics", "CounterStatuses", "CounterMode", "QPCounters",
		"Resources", "Contexts", "SRQs", "CharDevice uverbs", "CharDevice umad", "CharDevice rdma_cm",
	}
	for _, call := range calls {
		answer := fail(syscall.EINVAL)
		if call.want.Header.Flags&netlink.Dump == netlink.Dump {
			answer = failingDump(syscall.EINVAL)
		}
		first := exchange{call.want, answer}
		run := func(name string, is error, more ...exchange) {
			t.Run(call.name+" "+name, func(t *testing.T) {
				t.Parallel()
				err := call.call(script(t, append([]exchange{first}, more...)...))
				for _, target := range []error{fs.ErrNotExist, ErrNotSupported} {
					if got, want := errors.Is(err, target), errors.Is(is, target); got != want {
						t.Errorf("error %v: is %v: %v, want %v", err, target, got, want)
					}
				}
				if !errors.Is(err, syscall.EINVAL) {
					t.Errorf("error %v is not EINVAL", err)
				}
			})
		}
		var last error
		for _, name := range unsupported {
			if name == call.name {
				last = ErrNotSupported
			}
		}
		switch {
		case call.name == "Device":
			run("absent", fs.ErrNotExist)
		case !strings.Contains(call.about, "device"):
			run("unknown", last)
		default:
			run("absent", fs.ErrNotExist, noDevice)
			if call.name == "MoveToNetNS" { // not tried twice
				run("present", last, oneDevice())
			} else {
				run("present", last, oneDevice(), first)
			}
			run("undecided", nil, broken)
			if strings.Contains(call.about, "port") {
				run("without that port", fs.ErrNotExist, noPort)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		exchanges []exchange
		call      func(*Client) error
		want      string
	}{
		{
			"absent device",
			[]exchange{
				{message(0x1405, netlink.Dump, u32(1, 3)), failingDump(syscall.EINVAL)},
				{message(0x1401, 0, u32(1, 3)), fail(syscall.EINVAL)},
			},
			func(c *Client) error { _, err := c.Ports(3); return err },
			"rdma netlink PORT_GET device 3: invalid argument: no such device in the socket's network namespace",
		},
		{
			"absent port",
			[]exchange{{message(0x1411, 0, u32(1, 3), u32(3, 4)), fail(syscall.EINVAL)}, oneDevice()},
			func(c *Client) error { _, err := c.Statistics(3, 4); return err },
			"rdma netlink STAT_GET device 3 port 4: invalid argument: device mlx5_3 has no such port, its last is 2",
		},
		{
			"driver without counters",
			[]exchange{
				{message(0x1411, 0, u32(1, 3), u32(3, 2)), fail(syscall.EINVAL)},
				oneDevice(),
				{message(0x1411, 0, u32(1, 3), u32(3, 2)), fail(syscall.EINVAL)},
			},
			func(c *Client) error { _, err := c.Statistics(3, 2); return err },
			"rdma netlink STAT_GET device 3 port 2: invalid argument: needs Linux 5.3 or newer and a driver with hardware counters",
		},
		{
			"old kernel",
			[]exchange{
				{message(0x1416, netlink.Dump, u32(1, 3)), failingDump(syscall.EINVAL)},
				oneDevice(),
				{message(0x1416, netlink.Dump, u32(1, 3)), failingDump(syscall.EINVAL)},
			},
			func(c *Client) error { _, err := c.Contexts(3); return err },
			"rdma netlink RES_CTX_GET device 3: invalid argument: needs Linux 5.13 or newer",
		},
		{
			"kernel's words",
			[]exchange{{message(0x1401, 0, u32(1, 3)), failSaying(syscall.EBUSY, "Device is being renamed")}},
			func(c *Client) error { _, err := c.Device(3); return err },
			`rdma netlink GET device 3: device or resource busy (kernel: "Device is being renamed")`,
		},
		{
			"no privileges",
			[]exchange{{message(0x1407, netlink.Acknowledge, u8(66, 1)), fail(syscall.EPERM)}},
			func(c *Client) error { return c.SetNetNSMode("shared") },
			"rdma netlink SYS_SET: operation not permitted: CAP_NET_ADMIN in the initial user namespace is needed",
		},
		{
			"no answer",
			[]exchange{{message(0x1401, 0, u32(1, 3)), fail(0)}},
			func(c *Client) error { _, err := c.Device(3); return err },
			"rdma netlink GET device 3: the kernel acknowledged the request but sent no answer",
		},
		{
			"answer of another kind",
			[]exchange{{message(0x1401, 0, u32(1, 3)), reply(u32(1, 3))}},
			func(c *Client) error { _, err := c.Device(3); return err },
			"rdma netlink GET device 3: reply without DEV_INDEX or DEV_NAME",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.call(script(t, tt.exchanges...))
			if err == nil || err.Error() != tt.want {
				t.Errorf("error\n%v, want\n%v", err, tt.want)
			}
		})
	}
}

func TestDialError(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		errno syscall.Errno
		is    error
	}{
		{"no NETLINK_RDMA", syscall.EPROTONOSUPPORT, ErrNotSupported},
		{"no NETLINK_RDMA is also unsupported", syscall.EPROTONOSUPPORT, errors.ErrUnsupported},
		{"namespace of another user", syscall.EPERM, fs.ErrPermission},
		{"other", syscall.EMFILE, syscall.EMFILE},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := dialError(tt.errno); !errors.Is(err, tt.is) {
				t.Errorf("error %v is not %v", err, tt.is)
			}
		})
	}
}

// interruptedDump marks its message as the kernel marks a dump that changed
// under it.
func interruptedDump(part []byte) func(netlink.Message) ([]netlink.Message, error) {
	return func(request netlink.Message) ([]netlink.Message, error) {
		messages, err := dump(part)(request)
		messages[0].Header.Flags |= netlink.DumpInterrupted
		return messages, err
	}
}

func TestInterruptedDump(t *testing.T) {
	t.Parallel()
	part := attrBytes(u32(1, 3), str(2, "mlx5_3"), u32(3, 1))
	want := []Device{{Index: 3, Name: "mlx5_3", PortCount: 1}}
	again := exchange{message(0x1401, netlink.Dump), interruptedDump(part)}
	quiet := exchange{message(0x1401, netlink.Dump), dump(part)}
	tests := []struct {
		name      string
		exchanges []exchange
		is        error
	}{
		{"once", []exchange{again, quiet}, nil},
		{"four times", []exchange{again, again, again, again, quiet}, nil},
		{"too often", []exchange{again, again, again, again, again}, ErrInterrupted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := script(t, tt.exchanges...).Devices()
			if !errors.Is(err, tt.is) {
				t.Errorf("error is %v, want %v", err, tt.is)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDumpKeepsWhatItRead(t *testing.T) {
	t.Parallel()
	part := attrBytes(u32(1, 3), str(2, "mlx5_3"))
	got, err := script(t, exchange{message(0x1401, netlink.Dump), failingDump(syscall.ENOMEM, part, part[:5])}).Devices()
	if !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("error is %v, want ENOMEM", err)
	}
	if diff := cmp.Diff([]Device{{Index: 3, Name: "mlx5_3"}}, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// TestConcurrency runs under -race.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	c := kernel(t, func(request netlink.Message) ([]netlink.Message, error) {
		return reply(u32(1, binary.NativeEndian.Uint32(request.Data[4:])), str(2, "mlx5"))(request)
	})
	var wg sync.WaitGroup
	for i := range uint32(8) {
		wg.Go(func() {
			for range 50 {
				if d, err := c.Device(i); err != nil || d.Index != i {
					t.Errorf("Device(%d) = %v, %v", i, d, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCommand(t *testing.T) {
	t.Parallel()
	if got := Command(999).String(); got != "999" {
		t.Errorf("unknown command is %q, want its number", got)
	}
	if c, ok := CommandOf(0x1405); c != CmdPortGet || !ok {
		t.Errorf("CommandOf(0x1405) = %v, %v", c, ok)
	}
	if _, ok := CommandOf(0x1005); ok {
		t.Error("a message of another client has a command of nldev")
	}
}

// equal compares values of this package.
func equal(want, got any) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }))
}
