package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
)

// watching is a Watcher that runs on a lab's node, and what it reports.
type watching struct {
	*Watcher
	lab       *lab
	conflicts chan Conflict
	deaf      chan error
	end       context.CancelFunc
	ended     chan error
}

// watch runs a Watcher until the test ends.
func (l *lab) watch() *watching {
	w := &watching{lab: l, conflicts: make(chan Conflict), deaf: make(chan error, 10), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(l.tb.Context())
	w.end = cancel
	w.Watcher = NewWatcher(0, func(c Conflict) {
		select {
		case w.conflicts <- c:
		case <-ctx.Done():
		}
	}, func(err error) { w.deaf <- err })
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ended <- w.Run(ctx)
	}()
	l.tb.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// until has a rail's far end send a frame again and again until something is
// reported: the Watcher may not listen yet.
func (w *watching) until(n int, frame []byte) Conflict {
	w.lab.tb.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		w.lab.send(n, frame)
		select {
		case c := <-w.conflicts:
			return c
		case err := <-w.ended:
			w.lab.tb.Fatalf("the watcher ended: %v", err)
		case <-again.C:
		}
	}
}

// claimOf returns a target's addresses as claims of an owner.
func claimOf(t Target, owner string) []Claim {
	var claims []Claim
	for _, a := range t.Addresses {
		claims = append(claims, Claim{Addr: a.Addr, MAC: t.MAC, Owner: owner})
	}
	return claims
}

func wantConflict(t *testing.T, got Conflict, want Conflict) {
	t.Helper()
	if got.At.IsZero() {
		t.Error("the conflict has no time")
	}
	got.At = time.Time{}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("conflict (-want +got):\n%s", diff)
	}
}

// TestWatcher has another host claim and probe addresses, and the pod and the
// node say what they may.
func TestWatcher(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		pod := l.rail(1, "10.1.0.2/24", "10.1.0.3/24", "10.1.0.4/24", "fd01::2/64", "fd01::3/64")
		other := l.macvlan(2, "rail1", "10.1.0.5/24", "10.1.0.6/24")
		w := l.watch()
		w.Claim("rail1", claimOf(pod, "default/pod")...)
		w.Claim("rail1", claimOf(other, "default/other")...)
		node, err := net.InterfaceByName("rail1")
		if err != nil {
			t.Fatal(err)
		}
		hardware := net.HardwareAddr(foreign[:])
		a := func(s string) netip.Addr { return netip.MustParseAddr(s) }

		// A host that has the address asks for another.
		got := w.until(1, arpFrame(foreign, a("10.1.0.2"), a("10.1.0.99")))
		wantConflict(t, got, Conflict{Parent: "rail1", Addr: a("10.1.0.2"), MAC: hardware, Owner: "default/pod", Kind: KindClaim})

		// Nothing of this is a conflict, nor is one that was reported already. If
		// it were, it would come before what follows.
		if err := l.prober.Announce(t.Context(), int(l.pod.Fd()), []Target{pod, other}); err != nil {
			t.Fatal(err)
		}
		mine, others, nodes := [macSize]byte(pod.MAC), [macSize]byte(other.MAC), [macSize]byte(node.HardwareAddr)
		for _, frame := range [][]byte{
			announceFrame(mine, a("10.1.0.3")),             // a switch sent it back
			announceFrame(mine, a("fd01::2")),              //
			arpFrame(others, a("10.1.0.5"), a("10.1.0.3")), // one pod asks for the other
			probeFrame(others, a("10.1.0.3")),              // one of ours is about to get the address
			probeFrame(nodes, a("fd01::2")),                //
			announceFrame(foreign, a("10.1.0.2")),          // once a minute is enough
			announceFrame(foreign, a("10.1.0.77")),         // nobody's address
			probeFrame(foreign, a("10.9.0.3")),
		} {
			l.send(1, frame)
		}
		for _, tt := range []struct {
			frame []byte
			addr  string
			mac   net.HardwareAddr
			kind  Kind
		}{
			{announceFrame(foreign, a("10.1.0.3")), "10.1.0.3", hardware, KindClaim},
			{probeFrame(foreign, a("10.1.0.4")), "10.1.0.4", hardware, KindProbe},
			{announceFrame(foreign, a("fd01::2")), "fd01::2", hardware, KindClaim},
			{probeFrame(foreign, a("fd01::3")), "fd01::3", hardware, KindProbe},
		} {
			wantConflict(t, w.until(1, tt.frame), Conflict{Parent: "rail1", Addr: a(tt.addr), MAC: tt.mac, Owner: "default/pod", Kind: tt.kind})
		}
		// A pod of ours, and the node, with an address of another are.
		wantConflict(t, w.until(1, announceFrame(mine, a("10.1.0.5"))),
			Conflict{Parent: "rail1", Addr: a("10.1.0.5"), MAC: pod.MAC, Owner: "default/other", Kind: KindClaim})
		wantConflict(t, w.until(1, announceFrame(nodes, a("10.1.0.6"))),
			Conflict{Parent: "rail1", Addr: a("10.1.0.6"), MAC: node.HardwareAddr, Owner: "default/other", Kind: KindClaim})
	})
}

// TestWatcherFollowsParents has parents that come, change their names and go.
func TestWatcherFollowsParents(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		w := l.watch()
		mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
		next := byte(1)
		claim := func() (addr netip.Addr, frame []byte) {
			next++
			addr = netip.AddrFrom4([4]byte{10, 1, 0, next})
			w.Claim("rail1", Claim{Addr: addr, MAC: mac, Owner: "default/pod"})
			return addr, announceFrame(foreign, addr)
		}
		heard := func(when string, n int) {
			t.Helper()
			addr, frame := claim()
			if c := w.until(n, frame); c.Addr != addr || c.Parent != "rail1" {
				t.Errorf("%s: %+v, want one of %v on rail1", when, c, addr)
			}
		}
		claim()
		l.cable("rail1", 1)
		heard("it came", 1)
		rename(t, "rail1", "rail9")
		heard("it has another name", 1)
		l.cable("rail2", 2)
		rename(t, "rail2", "rail1")
		heard("another has its name", 2)
		kerneltest.DeleteLink(t, "rail1")
		kerneltest.AwaitNoLink(t, "rail1")
		l.cable("rail1", 3)
		heard("a new one has its name", 3)
	})
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	setUp(t, from, false)
	set(t, from, rtnl.LinkSet{Name: to})
	setUp(t, to, true)
}

func setUp(tb testing.TB, name string, up bool) {
	tb.Helper()
	set(tb, name, rtnl.LinkSet{Up: &up})
}

// set changes a link of the thread's namespace.
func set(tb testing.TB, name string, change rtnl.LinkSet) {
	tb.Helper()
	client, err := rtnl.Dial(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	link, err := net.InterfaceByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	change.Index = link.Index
	if errs := client.Do(change); errs != nil {
		tb.Fatal(errs)
	}
}

// TestWatcherEnds looks for what a Watcher leaves.
func TestWatcherEnds(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		target := l.rail(1, "10.1.0.2/24", "fd01::2/64")
		before := openFiles(t)
		w := l.watch()
		w.Claim("rail1", claimOf(target, "default/pod")...)
		w.Claim("rail7", claimOf(target, "default/pod")...)
		w.until(1, announceFrame(foreign, target.Addresses[0].Addr))
		w.Unclaim("rail7", target.Addresses[0].Addr, target.Addresses[1].Addr)
		w.Unclaim("rail1", target.Addresses[0].Addr)
		w.Unclaim("rail8", target.Addresses[0].Addr)
		w.until(1, announceFrame(foreign, target.Addresses[1].Addr))
		w.end()
		if err := <-w.ended; err != nil {
			t.Error(err)
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d open files, want %d", after, before)
		}
	})
}

// TestDeaf wants to be told once of a parent that cannot be listened on, and it to be
// listened on when that is possible.
func TestDeaf(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		one, two := l.rail(1, "10.1.0.2/24", "10.1.0.3/24"), l.rail(2, "10.2.0.2/24")
		w := l.watch()
		w.Claim("rail1", claimOf(one, "default/one")...)
		w.until(1, announceFrame(foreign, one.Addresses[0].Addr))
		var files unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: files.Max}); err != nil {
			t.Fatal(err)
		}
		w.Claim("rail2", claimOf(two, "default/two")...)
		if err := <-w.deaf; !errors.Is(err, unix.EMFILE) || !strings.Contains(err.Error(), "rail2") {
			t.Errorf("deaf: %v, want rail2 and %v", err, unix.EMFILE)
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
			t.Fatal(err)
		}
		w.Claim("rail2", claimOf(two, "default/two")...)
		w.until(1, announceFrame(foreign, one.Addresses[1].Addr)) // which was heard all the time
		w.until(2, announceFrame(foreign, two.Addresses[0].Addr))
		if len(w.deaf) > 0 {
			t.Errorf("told again: %v", <-w.deaf)
		}
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestWatcherWithoutNamespace(t *testing.T) {
	t.Parallel()
	if err := NewWatcher(1<<20, nil, nil).Run(t.Context()); err == nil {
		t.Error("no error")
	}
}

// TestJudge goes through time, which Run does not.
func TestJudge(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr("10.1.0.2")
	one, two := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	now := time.Unix(1e9, 0)
	w := NewWatcher(0, nil, nil)
	w.now = func() time.Time { return now }
	w.Claim("rail1", Claim{Addr: addr, MAC: one, Owner: "default/pod"})
	w.Claim("rail2", Claim{Addr: netip.MustParseAddr("10.1.0.3"), MAC: two, Owner: "default/pod"})
	steps := []struct {
		name   string
		parent string
		after  time.Duration
		mac    net.HardwareAddr
		probe  bool
		ofNode bool
		want   bool
	}{
		{name: "nobody's parent", parent: "rail3", mac: foreign[:]},
		{name: "its own", parent: "rail1", mac: one},
		{name: "another rail of the pod", parent: "rail1", mac: two},
		{name: "probe of the node", parent: "rail1", mac: foreign[:], probe: true, ofNode: true},
		{name: "first", parent: "rail1", mac: foreign[:], want: true},
		{name: "at once", parent: "rail1", mac: foreign[:]},
		{name: "within a minute", parent: "rail1", mac: foreign[:], after: time.Minute - 1},
		{name: "after a minute", parent: "rail1", mac: foreign[:], after: 1, want: true},
		{name: "claim of the node", parent: "rail1", mac: foreign[:], after: time.Minute, ofNode: true, want: true},
	}
	for _, s := range steps {
		now = now.Add(s.after)
		c, got := w.judge(s.parent, sighting{addr: addr, mac: [macSize]byte(s.mac), probe: s.probe}, s.ofNode)
		if got != s.want {
			t.Errorf("%s: %+v, %t, want %t", s.name, c, got, s.want)
		}
	}
	w.Claim("rail2", Claim{Addr: netip.MustParseAddr("10.1.0.3"), MAC: two, Owner: "default/other"})
	now = now.Add(time.Hour)
	if _, ok := w.judge("rail1", sighting{addr: addr, mac: [macSize]byte(two)}, false); !ok {
		t.Error("another pod's claim is no conflict")
	}
}
