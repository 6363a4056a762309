package ethtool

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// fakeIoctl returns a Client with no wire but this ioctl.
func fakeIoctl(tb testing.TB, ioctl func(netdev string, data []byte) error) *Client {
	tb.Helper()
	c := &Client{nl: genetlink.NewConn(nltest.Dial(nil)), ioctl: ioctl, arena: make([]byte, 4096)}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// fillArena leaves what an answer before may have left.
func fillArena(c *Client) {
	for i := range c.arena {
		c.arena[i] = 0xa5
	}
}

func TestIfreqSize(t *testing.T) {
	t.Parallel()
	if got, want := unsafe.Sizeof(ifreq{}), unsafe.Sizeof(unix.Ifreq{}); got < want {
		t.Errorf("struct ifreq has %d bytes, want at least %d", got, want)
	}
	if got := unsafe.Offsetof(ifreq{}.data); got != unix.IFNAMSIZ {
		t.Errorf("pointer at %d, want %d", got, unix.IFNAMSIZ)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	c, err := Dial(nil)
	if errors.Is(err, ErrNotSupported) {
		t.Skipf("%v: run on a kernel that has it", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	_, netlinkErr := c.Settings(1)
	_, ioctlErr := c.DriverInfo("lo")
	for _, err := range []error{netlinkErr, ioctlErr} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("error %v, want fs.ErrClosed", err)
		}
	}
}

func TestLongName(t *testing.T) {
	t.Parallel()
	err := newIoctlSocket(nil).call("a-name-of-16-byt", make([]byte, 8))
	if err == nil || !strings.Contains(err.Error(), "at most 15") {
		t.Errorf("error %v, want one that says how long a name may be", err)
	}
}

// The kernel must not write past the arena, whatever it is told to write.
func TestArenaGuard(t *testing.T) {
	t.Parallel()
	mapping, arena, err := mapArena()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unmapArena(mapping); err != nil {
			t.Error(err)
		}
	}()
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zero.Close() }()
	arena[len(arena)-1] = 1
	if _, err := unix.Read(int(zero.Fd()), mapping[len(arena):]); !errors.Is(err, unix.EFAULT) {
		t.Errorf("read into the guard: %v, want EFAULT", err)
	}
	if n, err := unix.Read(int(zero.Fd()), arena); n != arenaSize || err != nil || arena[len(arena)-1] != 0 {
		t.Errorf("read into the arena: %d, %v, want %d", n, err, arenaSize)
	}
}

func TestDialBadNamespace(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if c, err := Dial(&Config{NetNS: int(f.Fd())}); err == nil {
		_ = c.Close()
		t.Error("a file that is no namespace was entered")
	}
}
