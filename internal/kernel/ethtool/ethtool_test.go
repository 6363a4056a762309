package ethtool

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"
	"golang.org/x/sys/unix"
)

var testFamily = genetlink.Family{ID: 21, Version: unix.ETHTOOL_GENL_VERSION, Name: unix.ETHTOOL_GENL_NAME}

// A fakeKernel answers the ethtool family. It notes each request and fails
// those whose bytes are not as they should be.
type fakeKernel struct {
	tb      testing.TB
	answers map[command]map[int]answer
	flags   uint32 // ETHTOOL_FLAG_… that requests must have

	mu       sync.Mutex
	requests []string // "LINKMODES_GET 3", "LINKMODES_GET all"
}

// An answer is the attributes after the header, or an errno.
type answer struct {
	attrs []byte
	errno unix.Errno
}

func (k *fakeKernel) client() *Client {
	k.tb.Helper()
	if k.flags == 0 {
		k.flags = unix.ETHTOOL_FLAG_COMPACT_BITSETS
	}
	c, err := New(genltest.Dial(genltest.ServeFamily(testFamily, k.serve)), nil)
	if err != nil {
		k.tb.Fatal(err)
	}
	k.tb.Cleanup(func() { _ = c.Close() })
	return c
}

func (k *fakeKernel) serve(req genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if nreq.Header.Type != netlink.HeaderType(testFamily.ID) || req.Header.Version != unix.ETHTOOL_GENL_VERSION {
		k.tb.Errorf("request to family %d version %d", nreq.Header.Type, req.Header.Version)
	}
	cmd := command(req.Header.Command)
	if nreq.Header.Flags&netlink.Dump != 0 {
		k.requests = append(k.requests, cmd.String()+" all")
		k.check(nreq, netlink.Request|netlink.Dump, req.Data, attribute(netlink.Nested|1, attribute(3, nlenc.Uint32Bytes(k.flags))))
		return k.dump(cmd)
	}
	index, _ := headerIndex(req.Data)
	k.requests = append(k.requests, cmd.String()+" "+strconv.Itoa(index))
	k.check(nreq, netlink.Request, req.Data, attribute(netlink.Nested|1,
		attribute(1, nlenc.Uint32Bytes(uint32(index))), attribute(3, nlenc.Uint32Bytes(k.flags))))
	a, ok := k.answers[cmd][index]
	if !ok {
		a.errno = unix.ENODEV
	}
	if a.errno != 0 {
		return nil, genltest.Error(int(a.errno))
	}
	return []genetlink.Message{a.message(index)}, nil
}

func (k *fakeKernel) check(nreq netlink.Message, flags netlink.HeaderFlags, data, want []byte) {
	k.tb.Helper()
	if nreq.Header.Flags != flags {
		k.tb.Errorf("request flags %v, want %v", nreq.Header.Flags, flags)
	}
	if diff := cmp.Diff(want, data); diff != "" {
		k.tb.Errorf("request (-want +got):\n%s", diff)
	}
}

// dump goes over the netdevs as the kernel does: past those that do not
// support a command, and up to the first that fails.
func (k *fakeKernel) dump(cmd command) ([]genetlink.Message, error) {
	var msgs []genetlink.Message
	for _, index := range slices.Sorted(maps.Keys(k.answers[cmd])) {
		a := k.answers[cmd][index]
		switch a.errno {
		case 0:
			msgs = append(msgs, a.message(index))
		case unix.EOPNOTSUPP:
		default:
			return nil, genltest.Error(int(a.errno))
		}
	}
	if len(msgs) == 0 {
		return nil, io.EOF // genltest's word for a dump of nothing
	}
	return msgs, nil
}

func (a answer) message(index int) genetlink.Message {
	header := attribute(netlink.Nested|1, attribute(1, nlenc.Uint32Bytes(uint32(index))), attribute(2, []byte("eth\x00")))
	return genetlink.Message{Data: append(header, a.attrs...)}
}

// attribute encodes one attribute with its padding.
func attribute(typ uint16, data ...[]byte) []byte {
	body := slices.Concat(data...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(body)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, body...)
	return append(b, make([]byte, -len(b)&3)...)
}

// u8, u32 and u64 encode an attribute of that width.
func u8(typ uint16, v uint8) []byte   { return attribute(typ, []byte{v}) }
func u32(typ uint16, v uint32) []byte { return attribute(typ, nlenc.Uint32Bytes(v)) }
func u64(typ uint16, v uint64) []byte { return attribute(typ, nlenc.Uint64Bytes(v)) }

// words encodes bits as a bitset does, in as many words as they need.
func words(bits ...int) []byte {
	size := 0
	if len(bits) > 0 {
		size = 4 * (slices.Max(bits)/32 + 1)
	}
	b := make([]byte, size)
	for _, bit := range bits {
		word := b[bit/32*4:]
		binary.NativeEndian.PutUint32(word, binary.NativeEndian.Uint32(word)|1<<(bit%32))
	}
	return b
}

func TestErrors(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*Client) error{
		"LINKMODES_GET": func(c *Client) error { _, err := c.Settings(3); return err },
		"PAUSE_GET":     func(c *Client) error { _, err := c.Pause(3); return err },
		"FEC_GET":       func(c *Client) error { _, err := c.FEC(3); return err },
		"GDRVINFO":      func(c *Client) error { _, err := c.DriverInfo("eth0"); return err },
		"GSTRINGS":      func(c *Client) error { _, err := c.StatNames("eth0"); return err },
		"GSTATS":        func(c *Client) error { return c.Stats("eth0", nil) },
	}
	tests := []struct {
		name  string
		errno unix.Errno
		is    error
	}{
		{name: "gone", errno: unix.ENODEV, is: fs.ErrNotExist},
		{name: "not permitted", errno: unix.EPERM, is: fs.ErrPermission},
		{name: "not supported", errno: unix.EOPNOTSUPP, is: ErrNotSupported},
		{name: "other", errno: unix.EIO, is: unix.EIO},
	}
	for _, tt := range tests {
		for cmd, call := range calls {
			t.Run(tt.name+"/"+cmd, func(t *testing.T) {
				t.Parallel()
				c := (&fakeKernel{tb: t, answers: allFail(tt.errno)}).client()
				c.arena = make([]byte, 1024)
				c.ioctl = func(string, []byte) error { return tt.errno }
				err := call(c)
				if cmd == "LINKMODES_GET" && tt.errno == unix.EOPNOTSUPP {
					if err != nil {
						t.Fatalf("settings that are not supported: %v, want no error", err)
					}
					return
				}
				checkError(t, err, cmd, tt.is)
			})
		}
	}
}

func allFail(errno unix.Errno) map[command]map[int]answer {
	answers := make(map[command]map[int]answer)
	for _, cmd := range []command{linkModesGet, linkInfoGet, linkStateGet, pauseGet, fecGet} {
		answers[cmd] = map[int]answer{3: {errno: errno}}
	}
	return answers
}

func checkError(t *testing.T, err error, cmd string, is error) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Command != cmd || e.Netdev == "" {
		t.Errorf("error %#v, want an Error of %s that names the netdev", err, cmd)
	}
	for _, sentinel := range []error{fs.ErrNotExist, fs.ErrPermission, ErrNotSupported, ErrStatsChanged} {
		if got, want := errors.Is(err, sentinel), errors.Is(is, sentinel); got != want {
			t.Errorf("errors.Is(%q, %q) = %t, want %t", err, sentinel, got, want)
		}
	}
	if !errors.Is(err, is) {
		t.Errorf("error %q is not %q", err, is)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want string
	}{
		{name: "by name", err: &Error{Command: "GSTATS", Netdev: "eth0", Err: unix.ENODEV}, want: "ethtool GSTATS, eth0: no such device"},
		{name: "by index", err: &Error{Command: "FEC_GET", Netdev: ifindex(3), Err: unix.EPERM}, want: "ethtool FEC_GET, ifindex 3: operation not permitted"},
		{name: "dump", err: &Error{Command: "LINKINFO_GET", Err: unix.EIO}, want: "ethtool LINKINFO_GET: input/output error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNoFamily(t *testing.T) {
	t.Parallel()
	conn := genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(unix.ENOENT))
	})
	_, err := New(conn, nil)
	if !errors.Is(err, ErrNotSupported) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want ErrNotSupported and not fs.ErrNotExist, which is a netdev that is gone", err)
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	conn := genltest.Dial(genltest.ServeFamily(testFamily, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, io.EOF
	}))
	c, err := New(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pause(3); err == nil {
		t.Error("no error without an answer")
	}
}

func TestNewHasNoIoctl(t *testing.T) {
	t.Parallel()
	c := (&fakeKernel{tb: t}).client()
	if _, err := c.DriverInfo("eth0"); !errors.Is(err, ErrNotSupported) {
		t.Errorf("driver information: %v, want %v", err, ErrNotSupported)
	}
	if _, err := c.StatNames("eth0"); !errors.Is(err, ErrNotSupported) {
		t.Errorf("statistics: %v, want %v", err, ErrNotSupported)
	}
}

// TestNewWithIoctl has something that is no kernel answer ioctls, until Close.
func TestNewWithIoctl(t *testing.T) {
	t.Parallel()
	answer := func(netdev string, data []byte) error {
		if netdev != "eth0" || binary.NativeEndian.Uint32(data) != unix.ETHTOOL_GDRVINFO {
			t.Errorf("asked of %q: % x", netdev, data[:4])
			return unix.EOPNOTSUPP
		}
		copy(data[4:], "mlx5_core")
		return nil
	}
	c, err := New(genltest.Dial(genltest.ServeFamily(testFamily, nil)), answer)
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.DriverInfo("eth0")
	if diff := cmp.Diff(DriverInfo{Driver: "mlx5_core"}, info); err != nil || diff != "" {
		t.Errorf("(-want +got):\n%s\nerror %v", diff, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.DriverInfo("eth0"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after close, error %v, want fs.ErrClosed", err)
	}
}
