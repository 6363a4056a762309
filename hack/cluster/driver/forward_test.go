package driver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

// namespace is how a forwarder opens one that a test holds.
type namespace func() (*netns.NS, error)

func newNamespace(t *testing.T) namespace {
	t.Helper()
	path := fmt.Sprintf("/proc/self/fd/%d", kerneltest.NewNetNS(t).Fd())
	return func() (*netns.NS, error) { return netns.Open(path) }
}

// echoIn answers what it hears, once the sender is done, at an address of a new
// network namespace.
func echoIn(t *testing.T, greeting, address string) namespace {
	t.Helper()
	open := newNamespace(t)
	ns, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	var listener net.Listener
	err = ns.Do(func() (err error) {
		kerneltest.SetUp(t, "lo")
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				heard, _ := io.ReadAll(conn)
				_, _ = io.WriteString(conn, greeting+string(heard))
				_ = conn.Close()
			}()
		}
	}()
	return open
}

func newTestForwarder(t *testing.T, open func() (*netns.NS, error), target string) *forwarder {
	t.Helper()
	f, err := newForwarder("node1", open, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func dial(t *testing.T, f *forwarder) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", f.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// say sends a text and returns the answer to it.
func say(t *testing.T, f *forwarder, text string) string {
	t.Helper()
	conn := dial(t, f)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// TestForward passes text to a namespace and back, also after the machine was
// booted anew and has another.
func TestForward(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		var current atomic.Value
		current.Store(echoIn(t, "first ", "127.0.0.1:8080"))
		f := newTestForwarder(t, func() (*netns.NS, error) { return current.Load().(namespace)() }, "127.0.0.1:8080")
		long := strings.Repeat("rails ", 1<<17)
		if got := say(t, f, long); got != "first "+long {
			t.Errorf("%d bytes come back of %d", len(got), len(long))
		}
		current.Store(echoIn(t, "second ", "127.0.0.1:8080"))
		if got, want := say(t, f, "hello"), "second hello"; got != want {
			t.Errorf("after a boot: %q, want %q", got, want)
		}
	})
}

// TestForwardToNobody wants connections to end, and not to wait, when there is
// no machine, or nobody who listens there.
func TestForwardToNobody(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		for name, open := range map[string]func() (*netns.NS, error){
			"machine off":    func() (*netns.NS, error) { return nil, fs.ErrNotExist },
			"nobody listens": netns.Current,
		} {
			f := newTestForwarder(t, open, "127.0.0.1:9")
			answer, err := io.ReadAll(dial(t, f))
			if len(answer) != 0 {
				t.Errorf("%s: %q, %v, want the connection to end", name, answer, err)
			}
		}
	})
}

// TestForwardEnds wants connections that are idle to end with their machine and
// with the forwarder.
func TestForwardEnds(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		f := newTestForwarder(t, echoIn(t, "", "127.0.0.1:8080"), "127.0.0.1:8080")
		ends := func(how string, end func()) {
			t.Helper()
			idle := dial(t, f)
			if got := say(t, f, "x"); got != "x" {
				t.Fatalf("answer %q", got)
			}
			eventually(t, "the idle connection is passed on", func() bool {
				f.mu.Lock()
				defer f.mu.Unlock()
				return len(f.conns) == 2
			})
			end()
			_ = returns(t, how, func() error { _, err := idle.Read(make([]byte, 1)); return err })
		}
		ends("a connection to a machine that crashed", f.drop)
		ends("a connection of a forwarder that closed", func() {
			if err := returns(t, "Close", f.Close); err != nil {
				t.Error(err)
			}
		})
		if conn, err := net.Dial("tcp", f.Addr()); err == nil {
			t.Errorf("%s still listens", f.Addr())
			_ = conn.Close()
		}
	})
}

// TestForwardCloseWhileDialing wants Close not to wait for an address that
// never answers.
func TestForwardCloseWhileDialing(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "here", "there")
		kerneltest.SetUp(t, "here")
		kerneltest.SetUp(t, "there")
		kerneltest.AddAddress(t, "here", netip.MustParsePrefix("10.9.0.1/24"))
		link, err := netlink.LinkByName("here")
		if err != nil {
			t.Fatal(err)
		}
		silent := &netlink.Neigh{
			LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: net.IPv4(10, 9, 0, 2), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 2},
		}
		if err := netlink.NeighAdd(silent); err != nil {
			t.Fatal(err)
		}
		f := newTestForwarder(t, netns.Current, "10.9.0.2:80")
		dial(t, f)
		eventually(t, "the forwarder dials", func() bool { return dials(t) })
		if err := returns(t, "Close", f.Close); err != nil {
			t.Error(err)
		}
	})
}

// dials reports whether a TCP socket waits for an answer: the state SYN_SENT.
func dials(t *testing.T) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[3] == "02" {
			return true
		}
	}
	return false
}

func TestForwardRefuses(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	for name, test := range map[string]struct{ machine, target, want string }{
		"machine":      {"node9", "10.99.0.11:80", `machine "node9": want one of fabric, node1, node2`},
		"name":         {"node1", "web:80", `forward to "web:80": want ADDRESS:PORT`},
		"no port":      {"node1", "10.99.0.11", `forward to "10.99.0.11": want ADDRESS:PORT`},
		"bare address": {"node1", "fd00:99::11", `want ADDRESS:PORT`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := c.Forward(test.machine, test.target); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// TestForwardAfterClose wants no port to be left that nobody closes.
func TestForwardAfterClose(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Forward("node1", "10.99.0.11:80"); !errors.Is(err, errClosed) {
		t.Errorf("error %v, want %v", err, errClosed)
	}
	if len(c.forwarders) != 0 {
		t.Errorf("%d ports are left", len(c.forwarders))
	}
}
