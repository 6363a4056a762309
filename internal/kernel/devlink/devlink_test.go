package devlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

var testFamily = genetlink.Family{ID: 22, Version: 1, Name: "devlink"}

// exchange is a request that a client has to make, and what the kernel answers.
type exchange struct {
	command uint8
	flags   netlink.HeaderFlags
	request []byte
	answers [][]byte
	errno   unix.Errno
}

// serve returns a Client whose kernel expects one exchange.
func serve(t *testing.T, e exchange) *Client {
	t.Helper()
	c, err := New(genltest.Dial(genltest.ServeFamily(testFamily, func(got genetlink.Message, header netlink.Message) ([]genetlink.Message, error) {
		if got.Header.Command != e.command || got.Header.Version != 1 || header.Header.Flags != e.flags {
			t.Errorf("request %+v with flags %v, want command %d, version 1, flags %v", got.Header, header.Header.Flags, e.command, e.flags)
		}
		if !bytes.Equal(e.request, got.Data) {
			t.Errorf("request % x, want % x", got.Data, e.request)
		}
		if e.errno != 0 {
			return nil, genltest.Error(int(e.errno))
		}
		var messages []genetlink.Message
		for _, b := range e.answers {
			messages = append(messages, genetlink.Message{Data: b})
		}
		if len(messages) == 0 {
			return nil, io.EOF // genltest's word for a dump of nothing
		}
		return messages, nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Numbers of attributes are written out, so that a wrong constant does not
// prove itself.

func attrs(list ...netlink.Attribute) []byte { return nltest.MustMarshalAttributes(list) }

func nest(typ uint16, list ...netlink.Attribute) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: attrs(list...)}
}

func text(typ uint16, s string) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: append([]byte(s), 0)}
}

func u8(typ uint16, v uint8) netlink.Attribute { return netlink.Attribute{Type: typ, Data: []byte{v}} }

func u32(typ uint16, v uint32) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: binary.NativeEndian.AppendUint32(nil, v)}
}

func u64(typ uint16, v uint64) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: binary.NativeEndian.AppendUint64(nil, v)}
}

func flag(typ uint16) netlink.Attribute { return netlink.Attribute{Type: typ} }

// handle is a device, and a port of it unless that is negative.
func handle(port int) []netlink.Attribute {
	list := []netlink.Attribute{text(1, "pci"), text(2, "0000:17:00.0")}
	if port >= 0 {
		list = append(list, u32(3, uint32(port)))
	}
	return list
}

func reporter(port int, more ...netlink.Attribute) []byte {
	return attrs(append(handle(port), nest(114, more...))...)
}

func TestHealthReporters(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	tests := []struct {
		name    string
		answers [][]byte
		want    []Health
		err     string
	}{
		{name: "none"},
		{
			name: "a kernel that dumps the reporters of all devices",
			answers: [][]byte{
				attrs(text(1, "pci"), text(2, "0000:17:00.1"), nest(114, text(115, "fw"), u8(116, 1))),
				reporter(-1, text(115, "fw"), u8(116, 0)),
				attrs(text(1, "auxiliary"), text(2, "0000:17:00.0"), nest(114, text(115, "fw"), u8(116, 1))),
			},
			want: []Health{{Reporter: Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "fw"}, State: "healthy"}},
		},
		{
			name: "of a device, all attributes",
			answers: [][]byte{reporter(-1, text(115, "fw_fatal"), u8(116, 1), flag(61), u64(117, 3), u64(118, 2),
				u64(120, 1200000), u8(121, 1), u64(119, 99), u64(137, uint64(at.UnixNano())), u8(141, 1))},
			want: []Health{{Reporter: Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "fw_fatal"}, State: "error", Errors: 3, Recoveries: 2, Dumped: at}},
		},
		{
			name:    "of ports, one of index 0, and a state that is newer",
			answers: [][]byte{reporter(0, text(115, "tx"), u8(116, 0)), reporter(65537, text(115, "vnic"), u8(116, 7))},
			want: []Health{
				{Reporter: Reporter{Bus: "pci", Device: "0000:17:00.0", Port: new(uint32(0)), Name: "tx"}, State: "healthy"},
				{Reporter: Reporter{Bus: "pci", Device: "0000:17:00.0", Port: new(uint32(65537)), Name: "vnic"}, State: "7"},
			},
		},
		{
			name: "bad ones among good ones",
			answers: [][]byte{
				reporter(-1, text(115, "fw")),
				reporter(-1, text(115, "rx"), u8(116, 0), u32(117, 1)),
				reporter(-1, text(115, "vnic"), u8(116, 0)),
			},
			want: []Health{{Reporter: Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "vnic"}, State: "healthy"}},
			err:  "want BUS_NAME, DEV_NAME, HEALTH_REPORTER_NAME and HEALTH_REPORTER_STATE\ndevlink HEALTH_REPORTER_GET, pci/0000:17:00.0: ",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := serve(t, exchange{command: 52, flags: netlink.Request | netlink.Dump, request: attrs(handle(-1)...), answers: tt.answers}).HealthReporters("pci", "0000:17:00.0")
			checkError(t, err, tt.err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Items of a formatted message.
func pair(name string, value ...netlink.Attribute) []netlink.Attribute {
	return append(append([]netlink.Attribute{flag(108), text(111, name)}, value...), flag(110))
}

func value32(v uint32) []netlink.Attribute { return []netlink.Attribute{u8(112, 3), u32(113, v)} }
func value64(v uint64) []netlink.Attribute {
	return []netlink.Attribute{u8(112, 4), flag(61), u64(113, v)}
}

func fmsg(items ...[]netlink.Attribute) []byte {
	var all []netlink.Attribute
	for _, i := range items {
		all = append(all, i...)
	}
	return attrs(nest(106, all...))
}

func one(a netlink.Attribute) []netlink.Attribute { return []netlink.Attribute{a} }

func TestDiagnose(t *testing.T) {
	t.Parallel()
	rq := func(n uint32) []netlink.Attribute {
		return append(append(append(one(flag(107)), pair("rqn", value32(n)...)...), pair("state", u8(112, 10), text(113, "ready"))...), flag(110))
	}
	tests := []struct {
		name    string
		answers [][]byte
		want    map[string]uint64
		err     string
	}{
		{name: "nothing", answers: [][]byte{fmsg()}, want: map[string]uint64{}},
		{
			name: "vnic, inside a pair and an object",
			answers: [][]byte{fmsg(
				one(flag(107)), one(flag(108)), one(text(111, "vNIC env counters")), one(flag(107)),
				pair("total_error_queues", value32(2)...), pair("nic_receive_steering_discard", value64(1<<40)...), pair("level", u8(112, 1), u8(113, 200)),
				one(flag(110)), one(flag(110)), one(flag(110)),
			)},
			want: map[string]uint64{"total_error_queues": 2, "nic_receive_steering_discard": 1 << 40, "level": 200},
		},
		{
			name: "goes on in the next message, in the midst of a value",
			answers: [][]byte{
				fmsg(pair("cq_overrun", value32(1)...), one(flag(108)), one(text(111, "async_eq_overrun")), one(u8(112, 3))),
				fmsg(one(u32(113, 5)), one(flag(110)), pair("invalid_command", value32(0)...)),
			},
			want: map[string]uint64{"cq_overrun": 1, "async_eq_overrun": 5, "invalid_command": 0},
		},
		{
			name: "list of queues, words, and a number without a name",
			answers: [][]byte{fmsg(
				one(flag(108)), one(text(111, "RQs")), one(flag(109)), rq(4), rq(5), one(flag(110)), one(flag(110)),
				pair("Autorecover", u8(112, 6), u8(113, 1)), pair("stride", value32(64)...), value32(9),
			)},
			want: map[string]uint64{"stride": 64},
		},
		{
			name:    "value of another size than its type",
			answers: [][]byte{fmsg(pair("cq_overrun", u8(112, 4), u32(113, 1)))},
			err:     `devlink HEALTH_REPORTER_DIAGNOSE, pci/0000:17:00.0/3 vnic: value of "cq_overrun": `,
		},
	}
	request := attrs(append(handle(3), text(115, "vnic"))...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, exchange{command: 55, flags: netlink.Request, request: request, answers: tt.answers})
			got, err := c.Diagnose(Reporter{Bus: "pci", Device: "0000:17:00.0", Port: new(uint32(3)), Name: "vnic"})
			checkError(t, err, tt.err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestGolden decodes a reporter and a diagnosis as the kernel writes them on
// a little-endian machine, byte by byte.
func TestGolden(t *testing.T) {
	t.Parallel()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the bytes are those of a little-endian machine")
	}
	h, err := decodeHealth([]byte("\x08\x00\x01\x00pci\x00" + "\x11\x00\x02\x000000:17:00.0\x00\x00\x00\x00" +
		"\x30\x00\x72\x00" + "\x09\x00\x73\x00vnic\x00\x00\x00\x00" + "\x05\x00\x74\x00\x01\x00\x00\x00" +
		"\x0c\x00\x75\x00\x02\x00\x00\x00\x00\x00\x00\x00" + "\x0c\x00\x76\x00\x01\x00\x00\x00\x00\x00\x00\x00"))
	want := Health{Reporter: Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "vnic"}, State: "error", Errors: 2, Recoveries: 1}
	if diff := cmp.Diff(want, h); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s\nerror %v", diff, err)
	}
	var d diagnosis
	err = d.decode([]byte("\x2c\x00\x6a\x00" + "\x04\x00\x6c\x00" + "\x0f\x00\x6f\x00cq_overrun\x00\x00" +
		"\x05\x00\x70\x00\x03\x00\x00\x00" + "\x08\x00\x71\x00\x07\x00\x00\x00" + "\x04\x00\x6e\x00"))
	if diff := cmp.Diff(map[string]uint64{"cq_overrun": 7}, d.numbers()); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s\nerror %v", diff, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		errno unix.Errno
		is    error
	}{
		{unix.EOPNOTSUPP, ErrNotSupported},
		{unix.ENODEV, fs.ErrNotExist},
		{unix.EINVAL, fs.ErrNotExist}, // no such reporter
		{unix.EPERM, fs.ErrPermission},
	}
	vnic := Reporter{Bus: "pci", Device: "0000:17:00.0", Name: "vnic"}
	for _, tt := range tests {
		t.Run(tt.errno.Error(), func(t *testing.T) {
			t.Parallel()
			c := serve(t, exchange{command: 55, flags: netlink.Request, request: attrs(append(handle(-1), text(115, "vnic"))...), errno: tt.errno})
			got, err := c.Diagnose(vnic)
			checkError(t, err, "devlink HEALTH_REPORTER_DIAGNOSE, pci/0000:17:00.0 vnic: ")
			if got != nil || !errors.Is(err, tt.is) {
				t.Errorf("numbers %v, error %v, want %v", got, err, tt.is)
			}
			c = serve(t, exchange{command: 52, flags: netlink.Request | netlink.Dump, request: attrs(handle(-1)...), errno: tt.errno})
			if _, err = c.HealthReporters("pci", "0000:17:00.0"); err == nil { // genltest cannot fail a dump as the kernel does
				t.Error("a dump that failed is no error")
			}
		})
	}
}

func TestNewWithoutDevlink(t *testing.T) {
	t.Parallel()
	for errno, is := range map[unix.Errno]error{unix.ENOENT: ErrNotSupported, unix.EPERM: fs.ErrPermission} {
		conn := genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			return nil, genltest.Error(int(errno))
		})
		if _, err := New(conn); !errors.Is(err, is) {
			t.Errorf("%v: error %v, want %v", errno, err, is)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	c, err := Dial(nil)
	if errors.Is(err, ErrNotSupported) {
		t.Skipf("%v; run it on a kernel with devlink", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.HealthReporters("pci", "ffff:ff:1f.7"); err != nil {
		t.Error(err)
	}
	absent := Reporter{Bus: "pci", Device: "ffff:ff:1f.7", Name: "vnic"}
	if _, err := c.Diagnose(absent); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		t.Errorf("no such device: error %v, want fs.ErrNotExist, or fs.ErrPermission without CAP_NET_ADMIN", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.HealthReporters("pci", "ffff:ff:1f.7"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after close, error %v, want fs.ErrClosed", err)
	}
}

// FuzzHealth wants what was decoded to be the same when encoded again.
func FuzzHealth(f *testing.F) {
	f.Add(reporter(-1, text(115, "fw"), u8(116, 1), u64(117, 3), u64(118, 2), u64(137, 1)))
	f.Add(reporter(7, text(115, "vnic"), u8(116, 200)))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHealth(b)
		if err != nil {
			if h != (Health{}) {
				t.Fatalf("error %v and a value: %+v", err, h)
			}
			return
		}
		head := []netlink.Attribute{text(1, h.Bus), text(2, h.Device)}
		if h.Port != nil {
			head = append(head, u32(3, *h.Port))
		}
		state := map[string]uint8{"healthy": 0, "error": 1}[h.State]
		for i := range 256 {
			if stateName(uint8(i)) == h.State {
				state = uint8(i)
			}
		}
		seen := []netlink.Attribute{text(115, h.Name), u8(116, state), u64(117, h.Errors), u64(118, h.Recoveries)}
		if !h.Dumped.IsZero() {
			seen = append(seen, u64(137, uint64(h.Dumped.UnixNano())))
		}
		again, err := decodeHealth(attrs(append(head, nest(114, seen...))...))
		if diff := cmp.Diff(h, again); err != nil || diff != "" {
			t.Errorf("after encoding (-want +got):\n%s\nerror %v", diff, err)
		}
	})
}

// FuzzDiagnosis wants the numbers that were decoded to be the same when
// encoded again, in however many messages.
func FuzzDiagnosis(f *testing.F) {
	f.Add(fmsg(pair("a", value32(1)...), pair("b", value64(2)...)))
	f.Add(fmsg(one(flag(107)), pair("a", u8(112, 1), u8(113, 2)), one(flag(109)), value32(9), one(flag(110)), pair("a", value32(1)...)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d, again diagnosis
		if err := d.decode(b); err != nil {
			return
		}
		want := d.numbers()
		for name, v := range want {
			if name == "" {
				t.Errorf("a number without a name: %v", want)
			}
			if err := again.decode(fmsg(pair(name, value64(v)...))); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, again.numbers()); diff != "" {
			t.Errorf("after encoding (-want +got):\n%s", diff)
		}
	})
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want %q", err, want)
	}
}
