package uevent_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/uevent"
)

// listen returns a Listener of the test's namespace or of that of a file. It
// closes by itself when the kernel is silent for too long, so that a test that
// waits for an event fails in place of hanging.
func listen(tb testing.TB, netns *os.File) *uevent.Listener {
	tb.Helper()
	var config uevent.Config
	if netns != nil {
		config.NetNS = int(netns.Fd())
	}
	l, err := uevent.Listen(&config)
	if err != nil {
		tb.Fatal(err)
	}
	timer := time.AfterFunc(30*time.Second, func() { _ = l.Close() })
	tb.Cleanup(func() {
		timer.Stop()
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// await receives until the event of a netdev comes. Those of netdevs come in the order
// of their numbers, as the kernel has one lock for them. Of the rest of the machine's,
// which come to root here too, any may overtake another: since Linux 6.11 an event has
// its number before it is sent.
func await(tb testing.TB, l *uevent.Listener, action, netdev string) uevent.Event {
	tb.Helper()
	var last uint64
	for {
		e, err := l.Receive()
		if err != nil {
			tb.Fatalf("waiting for %s of %s: %v", action, netdev, err)
		}
		if e.Subsystem != "net" {
			continue
		}
		if e.Seq <= last {
			tb.Errorf("event %d after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Action == action && e.Vars["INTERFACE"] == netdev {
			return e
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	l := listen(t, nil)
	received := make(chan error)
	go func() {
		for {
			if _, err := l.Receive(); err != nil { // events of the machine do not matter
				received <- err
				return
			}
		}
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	_, after := l.Receive()
	for _, err := range []error{<-received, after} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("error %v, want fs.ErrClosed", err)
		}
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestListenBadNamespace(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if l, err := uevent.Listen(&uevent.Config{NetNS: int(f.Fd())}); err == nil {
		_ = l.Close()
		t.Error("a file that is no namespace was entered")
	}
}

func TestLiveNetdev(t *testing.T) {
	kerneltest.NetNS(t, func() {
		l := listen(t, nil)
		kerneltest.AddVeth(t, "va", "vb")
		e := await(t, l, "add", "va")
		if e.DevPath != "/devices/virtual/net/va" || e.Vars["DEVPATH"] != e.DevPath || e.Vars["ACTION"] != "add" || e.Vars["IFINDEX"] == "" {
			t.Errorf("event %+v", e)
		}
		kerneltest.DeleteLink(t, "va")
		await(t, l, "remove", "va")
	})
}

// A netdev that moves is told to each of the two namespaces.
func TestLiveMove(t *testing.T) {
	kerneltest.NetNS(t, func() {
		other := kerneltest.NewNetNS(t)
		here, there := listen(t, nil), listen(t, other)
		kerneltest.AddVeth(t, "va", "vb")
		await(t, here, "add", "vb")
		kerneltest.MoveLink(t, "vb", other)
		await(t, here, "remove", "vb")
		e := await(t, there, "add", "vb")
		if diff := cmp.Diff("net", e.Subsystem); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// After an overrun all events come again, also the first.
func TestLiveOverrun(t *testing.T) {
	kerneltest.NetNS(t, func() {
		l := listen(t, nil)
		if err := l.SetReadBuffer(1); err != nil { // the kernel makes it some 2 kB
			t.Fatal(err)
		}
		for i := range 20 {
			kerneltest.AddVeth(t, fmt.Sprintf("va%d", i), fmt.Sprintf("vb%d", i))
		}
		if err := l.SetReadBuffer(1 << 20); err != nil {
			t.Fatal(err)
		}
		if e, err := l.Receive(); !errors.Is(err, uevent.ErrOverrun) {
			t.Fatalf("event %+v and error %v, want ErrOverrun", e, err)
		}
		kerneltest.AddVeth(t, "after", "beyond")
		await(t, l, "add", "after")
	})
}

// A process can send to a Listener, given CAP_NET_ADMIN, and is not heard.
func TestLiveForged(t *testing.T) {
	kerneltest.NetNS(t, func() {
		l := listen(t, nil)
		forged := []byte("add@/devices/forged\x00ACTION=add\x00SUBSYSTEM=net\x00INTERFACE=forged\x00SEQNUM=1\x00")
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }()
		for name, to := range map[string]*unix.SockaddrNetlink{
			"group": {Family: unix.AF_NETLINK, Groups: 1},
			"port":  {Family: unix.AF_NETLINK, Pid: l.Port()},
		} {
			// To a group, an error comes after all have got the message:
			// nobody listens at port 0, which is the other receiver.
			if err := unix.Sendto(fd, forged, 0, to); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		kerneltest.AddVeth(t, "va", "vb")
		for {
			e, err := l.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if e.DevPath == "/devices/forged" {
				t.Fatalf("forged event %+v", e)
			}
			if e.Vars["INTERFACE"] == "va" {
				return
			}
		}
	})
}
