package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

func TestForward(t *testing.T) {
	t.Parallel()
	errLost := errors.New("lost")
	tests := []struct {
		name    string
		errs    []error // of the calls of receive, the last again and again
		forward int     // how many changes are forwarded before it ends
		all     int     // how many of them are of everything
		err     error
	}{
		{name: "closed", errs: []error{nil, nil, fs.ErrClosed}, forward: 2, err: fs.ErrClosed},
		{name: "events lost once", errs: []error{nil, errLost, nil, fs.ErrClosed}, forward: 3, all: 1, err: fs.ErrClosed},
		{name: "broken", errs: []error{nil, errLost}, forward: 1 + failures, all: failures, err: errLost},
		{
			name:    "fails now and then",
			errs:    append(append(repeat(errLost, failures), nil), append(repeat(errLost, failures), nil, fs.ErrClosed)...),
			forward: 2*failures + 2, all: 2 * failures, err: fs.ErrClosed,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			events := make(chan Changes, 100)
			calls := 0
			err := forward(t.Context(), events, func() (Changes, error) {
				calls++
				return Changes{}, tt.errs[min(calls, len(tt.errs))-1]
			})
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			close(events)
			forwarded, all := 0, 0
			for c := range events {
				forwarded++
				if c.All {
					all++
				}
			}
			if forwarded != tt.forward || all != tt.all {
				t.Errorf("forwarded %d changes, %d of everything, want %d and %d", forwarded, all, tt.forward, tt.all)
			}
		})
	}
}

func repeat(err error, times int) []error {
	var errs []error
	for range times {
		errs = append(errs, err)
	}
	return errs
}

func TestForwardEndsWhileNobodyListens(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- forward(ctx, make(chan Changes), func() (Changes, error) { return Changes{}, nil })
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestPathChange(t *testing.T) {
	t.Parallel()
	want := Changes{Names: map[string]bool{
		"devices": true, "pci0000:16": true, "0000:16:01.0": true, "0000:17:00.0": true, "infiniband": true, "mlx5_0": true,
	}}
	got := pathChange("/devices/pci0000:16/0000:16:01.0/0000:17:00.0/infiniband/mlx5_0")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTouchedLinks(t *testing.T) {
	t.Parallel()
	links := []rtnl.Link{
		{Index: 1, Name: "lo"},
		{Index: 2, Name: "rail0", MasterIndex: 4},
		{Index: 3, Name: "rail1", MasterIndex: 4},
		{Index: 4, Name: "bond0", Kind: "bond"},
		{Index: 5, Name: "bond0.7", Kind: "vlan", ParentIndex: 4},
		{Index: 6, Name: "rail2", MasterIndex: 7},
		{Index: 7, Name: "br0", Kind: "bridge"},
		{Index: 8, Name: "veth0", Kind: "veth", MasterIndex: 7, ParentIndex: 9},
		{Index: 9, Name: "veth1", Kind: "veth", ParentIndex: 8},
		{Index: 10, Name: "rail3"},
		{Index: 11, Name: "macvlan0", Kind: "macvlan", ParentIndex: 10},
	}
	gone := []rtnl.Link{{Index: 12, Name: "macvlan1", Kind: "macvlan", ParentIndex: 10}}
	tests := []struct {
		name    string
		changed int
		want    []int
	}{
		{"alone", 1, []int{1}},
		{"member of a bond", 2, []int{2, 3, 4}},
		{"VLAN on a bond", 5, []int{2, 3, 4, 5}},
		{"member of a bridge", 6, []int{6, 7}},
		{"bridge, whose members have no GIDs of it", 7, []int{7}},
		{"veth, on each other", 9, []int{7, 8, 9}},
		{"macvlan", 11, []int{10, 11}},
		{"macvlan that is gone", 12, []int{10, 12}},
		{"link that is not known", 99, []int{99}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := map[int]bool{}
			for _, index := range tt.want {
				want[index] = true
			}
			if diff := cmp.Diff(want, touchedLinks(map[int]bool{tt.changed: true}, links, gone)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// recorder is a node that remembers what it was asked to read.
type recorder struct {
	mu    sync.Mutex
	reads []Changes
}

// read returns other facts each time, so that each snapshot is published.
func (r *recorder) read(_ *Facts, changed Changes) *Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads = append(r.reads, changed)
	return &Facts{Kernel: fmt.Sprint("read ", len(r.reads))}
}

// heard returns all that was said to have changed since the first read.
func (r *recorder) heard() Changes {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all Changes
	for _, c := range r.reads[1:] {
		all.merge(c)
	}
	return all
}

// awaitHeard waits until what was heard is as wanted.
func (r *recorder) awaitHeard(t *testing.T, w *Watcher, what string, isWanted func(Changes) bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		changed := w.Changed()
		if w.Snapshot() != nil && isWanted(r.heard()) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s was not heard of, but %+v", what, r.heard())
		}
	}
}

// listenHere hears the kernel in the test's namespace, but for RDMA.
func listenHere() (*listener, error) { return listen(node.Running(sysfs.New("/")), false) }

// TestWatcherHearsTheKernel has real events in a network namespace.
func TestWatcherHearsTheKernel(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		var r recorder
		w := newWatcher(r.read, listenHere, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		r.awaitHeard(t, w, "nothing", func(Changes) bool { return true })

		kerneltest.AddVeth(t, "rail0", "peer0")
		index := indexOf(t, "rail0")
		r.awaitHeard(t, w, "a new link", func(c Changes) bool { return c.Links[index] && c.Names["rail0"] })
		heard := r.heard()
		if heard.All || heard.Names["rx-0"] {
			t.Errorf("heard too much: %+v", heard)
		}
		kerneltest.AddMacvlan(t, "macvlan0", "rail0")
		macvlan := indexOf(t, "macvlan0")
		r.awaitHeard(t, w, "a macvlan", func(c Changes) bool { return c.Links[macvlan] })
		kerneltest.AddBridge(t, "br0")
		bridge := indexOf(t, "br0")
		kerneltest.AddAddress(t, "br0", netip.MustParsePrefix("172.16.11.2/24"))
		r.awaitHeard(t, w, "an address", func(c Changes) bool { return c.Links[bridge] })
		kerneltest.DeleteLink(t, "rail0")

		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v, want %v", err, context.Canceled)
		}
	})
}

func indexOf(t *testing.T, name string) int {
	t.Helper()
	link, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return link.Index
}

// TestWatcherReadsTheNode watches the real node with a real Reader, which in a
// new namespace has no RDMA device of its own.
func TestWatcherReadsTheNode(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		tree := kerneltest.Tree(t, "testdata/machines/mlx5-no-module.txtar") // without ib_core, so that no socket of RDMA is opened
		r, err := NewReader(node.Running(tree))
		if err != nil {
			t.Fatal(err)
		}
		w := NewWatcher(r, Options{})
		if w.Snapshot() != nil {
			t.Error("it has a snapshot before it ran")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		first := w.Changed()
		go func() { ended <- w.Run(ctx) }()
		<-first
		s := w.Snapshot()
		if _, ok := s.Device("0000:17:00.0"); !ok || len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "0000:17:00.0") {
			t.Errorf("it has %+v, want the card, and the problem that its netdev cannot be looked for", s)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v, want %v", err, context.Canceled)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWatcherLeavesNothing runs Watchers that end at once, or in the midst of
// events.
func TestWatcherLeavesNothing(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		run := func(events int) {
			var r recorder
			w := newWatcher(r.read, listenHere, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			first := w.Changed()
			go func() { ended <- w.Run(ctx) }()
			<-first
			for range events {
				kerneltest.AddVeth(t, "rail0", "peer0")
				kerneltest.DeleteLink(t, "rail0")
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v, want %v", err, context.Canceled)
			}
		}
		run(1) // which opens what stays open, such as the poller of the runtime
		files := openFiles(t)
		for i := range 5 {
			run(i)
		}
		stacks := make([]byte, 1<<20)
		if stacks = stacks[:runtime.Stack(stacks, true)]; bytes.Contains(stacks, []byte("inventory.(*")) {
			t.Errorf("goroutines that run on:\n%s", stacks)
		}
		if diff := cmp.Diff(files, openFiles(t)); diff != "" {
			t.Errorf("open files (-before +after):\n%s", diff)
		}
	})
}

func TestNewReaderIsThatOfTheNode(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		r, err := NewReader(node.Running(sysfs.New(t.TempDir())))
		if err != nil {
			t.Fatal(err)
		}
		kerneltest.AddVeth(t, "rail0", "peer0")
		facts := r.Read(nil, Changes{})
		names := each(facts.Netlink.Links, func(l rtnl.Link) string { return l.Name })
		if diff := cmp.Diff([]string{"lo", "peer0", "rail0"}, names); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
		if _, ok := facts.Netlink.Settings[indexOf(t, "rail0")]; !ok || facts.Netlink.RDMA != nil || facts.Netlink.System != nil {
			t.Errorf("read %+v, want settings of the veth, and no RDMA where ib_core is not loaded", facts.Netlink)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestWatcherOfACopy(t *testing.T) {
	t.Parallel()
	r, err := NewArchiveReader(sysfs.New(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := NewWatcher(r, Options{}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "copy") {
		t.Errorf("error %v, want one that a copy does not change", err)
	}
}
