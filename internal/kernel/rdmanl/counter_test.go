package rdmanl

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
)

// onPort is the beginning of a request about port 1 of device 3.
func onPort(more ...netlink.Attribute) []netlink.Attribute {
	return append([]netlink.Attribute{u32(1, 3), u32(3, 1)}, more...)
}

// done answers as STAT_SET and STAT_DEL do.
func done(more ...netlink.Attribute) func(netlink.Message) ([]netlink.Message, error) {
	return reply(append([]netlink.Attribute{u32(1, 3), str(2, "mlx5_3"), u32(3, 1)}, more...)...)
}

func TestSetCounterMode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		mode CounterMode
		sent []netlink.Attribute // none where it is refused
		err  string
	}{
		{
			name: "by process, with optional counters", mode: CounterMode{Mode: "auto", ByPID: true, Optional: new(true)},
			sent: []netlink.Attribute{u32(75, 19), u32(74, 1), u32(76, 2), u8(104, 1)},
		},
		{
			name: "by type, without optional counters", mode: CounterMode{Mode: "auto", ByType: true, Optional: new(false)},
			sent: []netlink.Attribute{u32(75, 19), u32(74, 1), u32(76, 1), u8(104, 0)},
		},
		{
			name: "by both, as it was read", mode: CounterMode{Mode: "auto", AutoMask: 3, ByType: true, ByPID: true},
			sent: []netlink.Attribute{u32(75, 19), u32(74, 1), u32(76, 3)},
		},
		{
			name: "by what has no name yet", mode: CounterMode{Mode: "auto", AutoMask: 4},
			sent: []netlink.Attribute{u32(75, 19), u32(74, 1), u32(76, 4)},
		},
		{name: "none", mode: CounterMode{Mode: "none"}, sent: []netlink.Attribute{u32(75, 19), u32(74, 1), u32(76, 0)}},
		{name: "auto by nothing", mode: CounterMode{Mode: "auto"}, err: `counter mode "auto" with the mask 0x0: want`},
		{name: "none by process", mode: CounterMode{Mode: "none", ByPID: true}, err: `counter mode "none" with the mask 0x2: want`},
		{name: "none with optional counters", mode: CounterMode{Mode: "none", Optional: new(true)}, err: `"none" alone`},
		{name: "manual", mode: CounterMode{Mode: "manual"}, err: `counter mode "manual"`},
		{name: "no mode", err: `counter mode ""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var exchanges []exchange
			if tt.sent != nil {
				exchanges = []exchange{{message(0x1410, 0, onPort(tt.sent...)...), done()}}
			}
			checkError(t, script(t, exchanges...).SetCounterMode(3, 1, tt.mode), tt.err)
		})
	}
}

func TestBindQP(t *testing.T) {
	t.Parallel()
	want := message(0x1410, 0, onPort(u32(75, 19), u32(74, 2), u32(21, 178))...)
	id, err := script(t, exchange{want, done(u32(79, 7), u32(21, 178))}).BindQP(3, 1, 178)
	if err != nil || id != 7 {
		t.Errorf("counter %d, error %v, want 7", id, err)
	}
	id, err = script(t, exchange{want, done()}).BindQP(3, 1, 178)
	checkError(t, err, "rdma netlink STAT_SET device 3 port 1: reply without STAT_COUNTER_ID")
	if id != 0 {
		t.Errorf("counter %d with an error", id)
	}
	want = message(0x1410, 0, onPort(u32(75, 19), u32(74, 2), u32(21, 179), u32(79, 7))...)
	if err := script(t, exchange{want, done(u32(79, 7), u32(21, 179))}).BindQPToCounter(3, 1, 179, 7); err != nil {
		t.Error(err)
	}
}

func TestUnbindQP(t *testing.T) {
	t.Parallel()
	want := message(0x1412, 0, onPort(u32(75, 19), u32(79, 7), u32(21, 178))...)
	if err := script(t, exchange{want, done(u32(79, 7), u32(21, 178))}).UnbindQP(3, 1, 178, 7); err != nil {
		t.Error(err)
	}
}

func TestSetOptionalCounters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		indexes []uint32
		sent    netlink.Attribute
	}{
		{"two", []uint32{41, 42}, nest(80, u32(94, 41), u32(94, 42))},
		{"none, which switches all off", nil, nest(80)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := script(t, exchange{message(0x1410, 0, onPort(tt.sent)...), done()})
			if err := c.SetOptionalCounters(3, 1, tt.indexes); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCounterChangesFail has each change refused in each way.
func TestCounterChangesFail(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*Client) error{
		"STAT_SET device 3 port 1, mode": func(c *Client) error { return c.SetCounterMode(3, 1, CounterMode{Mode: "auto", ByPID: true}) },
		"STAT_SET device 3 port 1, bind": func(c *Client) error { _, err := c.BindQP(3, 1, 178); return err },
		"STAT_SET device 3 port 1, join": func(c *Client) error { return c.BindQPToCounter(3, 1, 178, 7) },
		"STAT_SET device 3 port 1, list": func(c *Client) error { return c.SetOptionalCounters(3, 1, []uint32{1}) },
		"STAT_DEL device 3 port 1, free": func(c *Client) error { return c.UnbindQP(3, 1, 178, 7) },
	}
	refusals := []struct {
		errno syscall.Errno
		is    error
		text  string
	}{
		{syscall.EPERM, fs.ErrPermission, "CAP_NET_ADMIN"},
		{syscall.ENOENT, fs.ErrNotExist, "no such file"},
		{syscall.EOPNOTSUPP, ErrNotSupported, "not supported"},
		{syscall.EBUSY, syscall.EBUSY, "busy"},
	}
	for name, change := range changes {
		for _, r := range refusals {
			c := kernel(t, fail(r.errno))
			err := change(c)
			checkError(t, err, "rdma netlink "+name[:len("STAT_SET device 3 port 1")]+": ")
			checkError(t, err, r.text)
			if !errors.Is(err, r.is) || !errors.Is(err, r.errno) {
				t.Errorf("%s: error %v, want %v and %v", name, err, r.is, r.errno)
			}
		}
	}
	err := kernel(t, failSaying(syscall.EBUSY, "Turning on auto mode is not allowed when there is bound QP")).
		SetCounterMode(3, 1, CounterMode{Mode: "auto", ByPID: true})
	checkError(t, err, `QPs are bound to counters of this port; their processes must close them first (kernel: "Turning on`)
}

// TestCounterChangeOfNothing tells a device or port that is not there, which the
// kernel answers with EINVAL, from what is wrong with the QP.
func TestCounterChangeOfNothing(t *testing.T) {
	t.Parallel()
	bind := func(c *Client, port int) error { _, err := c.BindQP(3, port, 178); return err }
	request := func(port uint32) netlink.Message {
		return message(0x1410, 0, u32(1, 3), u32(3, port), u32(75, 19), u32(74, 2), u32(21, 178))
	}
	absent := exchange{message(0x1401, 0, u32(1, 3)), fail(syscall.EINVAL)}
	if err := bind(script(t, exchange{request(1), fail(syscall.EINVAL)}, absent), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such device: error %v, want fs.ErrNotExist", err)
	}
	if err := bind(script(t, exchange{request(9), fail(syscall.EINVAL)}, oneDevice()), 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such port: error %v, want fs.ErrNotExist", err)
	}
	err := bind(script(t, exchange{request(1), fail(syscall.EINVAL)}, oneDevice()), 1)
	if !errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotSupported) {
		t.Errorf("QP that is bound already: error %v, want EINVAL and no more", err)
	}
}

func FuzzDecodeCounterID(f *testing.F) {
	f.Add(attrBytes(u32(1, 3), u32(79, 7), u32(21, 178)))
	f.Add(attrBytes(u8(79, 7)))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := decodeCounterID(b)
		if err != nil {
			if id != 0 {
				t.Errorf("error %v and a value: %d", err, id)
			}
			return
		}
		again, err := decodeCounterID(attrBytes(u32(79, id)))
		if diff := cmp.Diff(id, again); err != nil || diff != "" {
			t.Errorf("after encoding (-want +got):\n%s\nerror %v", diff, err)
		}
	})
}
