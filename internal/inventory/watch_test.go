package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"railhead/internal/kernel/sysfs"
)

// fakeNode is a node whose facts a test changes, and that remembers what it was
// asked to read.
type fakeNode struct {
	mu    sync.Mutex
	names []string // RDMA devices, each on a function of the same number
	reads []Changes
}

func (n *fakeNode) set(names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names = names
}

func (n *fakeNode) read(_ *Facts, changed Changes) *Facts {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads = append(n.reads, changed)
	f := &Facts{PCI: []sysfs.PCIDevice{{Address: "0000:17:00.0", Path: "devices/pci0000:16/0000:17:00.0", Class: 0x020000, Driver: "mlx5_core"}}}
	for _, name := range n.names {
		f.IB = append(f.IB, sysfs.IBDevice{Name: name, DevicePath: "devices/pci0000:16/0000:17:00.0"})
	}
	return f
}

func (n *fakeNode) readCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.reads)
}

// rdmaNames are the RDMA devices of a snapshot.
func rdmaNames(s *Snapshot) []string {
	var names []string
	for _, d := range s.Devices {
		if d.RDMA != nil {
			names = append(names, d.RDMA.Name)
		}
	}
	return names
}

// watched runs a Watcher of a node until the test ends.
func watched(t *testing.T, n *fakeNode, events chan Changes) *Watcher {
	t.Helper()
	w := newWatcher(n.read, nil, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.run(ctx, events) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	return w
}

func TestWatcherPublishesTheFirstSnapshotAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{names: []string{"mlx5_0"}}
		w := watched(t, n, make(chan Changes))
		synctest.Wait()
		if diff := cmp.Diff([]string{"mlx5_0"}, rdmaNames(w.Snapshot())); diff != "" {
			t.Error(diff)
		}
		if !n.reads[0].All {
			t.Error("the first read was not of everything")
		}
	})
}

func TestWatcherJoinsABurstOfEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{}
		events := make(chan Changes)
		w := watched(t, n, events)
		synctest.Wait()
		changed := w.Changed()
		n.set("mlx5_0")
		for _, name := range []string{"a", "b", "c"} {
			events <- nameChange(name)
			time.Sleep(settle / 2)
		}
		if n.readCount() != 1 {
			t.Errorf("it read %d times during the burst", n.readCount()-1)
		}
		<-changed
		if got := n.readCount(); got != 2 {
			t.Errorf("it read %d times after the burst, want once", got-1)
		}
		want := map[string]bool{"a": true, "b": true, "c": true}
		if diff := cmp.Diff(want, n.reads[1].Names); diff != "" {
			t.Errorf("what it was told to read (-want +got):\n%s", diff)
		}
	})
}

func TestWatcherDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{}
		events := make(chan Changes)
		watched(t, n, events)
		synctest.Wait()
		start := time.Now()
		for time.Since(start) <= patience+settle { // events that never pause
			events <- nameChange("a")
			time.Sleep(settle / 5)
		}
		if n.readCount() < 2 {
			t.Error("events that never pause kept it from reading")
		}
	})
}

func TestWatcherIsSilentWhenNothingChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{names: []string{"mlx5_0"}}
		events := make(chan Changes)
		w := watched(t, n, events)
		synctest.Wait()
		changed, before := w.Changed(), w.Snapshot()
		events <- everything()
		time.Sleep(2 * settle)
		select {
		case <-changed:
			t.Error("it announced a change, and there was none")
		default:
		}
		if w.Snapshot() != before {
			t.Error("it replaced the snapshot by an equal one")
		}
	})
}

func TestWatcherLooksAgainForADeviceThatVanished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{names: []string{"mlx5_0"}}
		events := make(chan Changes)
		w := watched(t, n, events)
		synctest.Wait()
		n.set() // on its way to another namespace: nowhere for a moment
		events <- nameChange("mlx5_0")
		time.Sleep(settle + time.Millisecond)
		if names := rdmaNames(w.Snapshot()); names != nil {
			t.Fatalf("the snapshot still has %v", names)
		}
		n.set("mlx5_0") // arrived, which makes no event here
		time.Sleep(searchFirst)
		if !slices.Equal(rdmaNames(w.Snapshot()), []string{"mlx5_0"}) {
			t.Error("it was not found again")
		}
		reads := n.readCount()
		time.Sleep(refresh - time.Second)
		if n.readCount() != reads {
			t.Errorf("it went on to look %d times for what was found", n.readCount()-reads)
		}
	})
}

func TestWatcherGivesUpTheSearch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{names: []string{"mlx5_0"}}
		events := make(chan Changes)
		watched(t, n, events)
		synctest.Wait()
		n.set()
		events <- nameChange("mlx5_0")
		time.Sleep(refresh - time.Second)
		if got, want := n.readCount(), 2+searches; got != want {
			t.Errorf("it read %d times, want %d", got, want)
		}
	})
}

func TestWatcherRefreshes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{}
		w := watched(t, n, make(chan Changes))
		synctest.Wait()
		n.set("mlx5_0") // which made no event
		time.Sleep(refresh + time.Second)
		if !slices.Equal(rdmaNames(w.Snapshot()), []string{"mlx5_0"}) {
			t.Error("what made no event was not found")
		}
		if n.reads[1].All {
			t.Error("the refresh read everything")
		}
	})
}

// TestChangedMissesNothing has many readers that wait for a snapshot while it
// is published again and again.
func TestChangedMissesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{}
		events := make(chan Changes)
		w := watched(t, n, events)
		synctest.Wait()
		var readers sync.WaitGroup
		for range 10 {
			readers.Go(func() {
				for {
					changed := w.Changed()
					if slices.Equal(rdmaNames(w.Snapshot()), []string{"last"}) {
						return
					}
					<-changed
				}
			})
		}
		for _, name := range []string{"first", "second", "last"} {
			n.set(name)
			events <- nameChange(name)
			time.Sleep(2 * settle)
		}
		readers.Wait()
	})
}

func TestSearchNext(t *testing.T) {
	t.Parallel()
	// snapshot has devices on functions of mlx5_core, with an RDMA device where
	// the ID is in upper case.
	snapshot := func(ids ...string) *Snapshot {
		s := &Snapshot{}
		for _, id := range ids {
			d := Device{ID: strings.ToLower(id), PCI: &PCI{Driver: "mlx5_core"}}
			if id != d.ID {
				d.RDMA = &RDMA{Name: "rdma of " + d.ID}
			}
			s.Devices = append(s.Devices, d)
		}
		return s
	}
	unbound := snapshot("a", "B")
	unbound.Devices[0].PCI.Driver = ""
	tests := []struct {
		name   string
		search search
		before *Snapshot
		after  *Snapshot
		want   search
	}{
		{"nothing is missing", search{}, snapshot("A", "B"), snapshot("A", "B"), search{}},
		{"one never had RDMA", search{}, snapshot("a", "B"), snapshot("a", "B"), search{}},
		{"one is lost", search{}, snapshot("A", "B"), snapshot("a", "B"), search{missing: set("a"), left: searches}},
		{"one lost its driver too", search{}, snapshot("A", "B"), unbound, search{}},
		{"one lost its function too", search{}, snapshot("A", "B"), snapshot("B"), search{}},
		{"still lost", search{missing: set("a"), left: 3}, snapshot("a", "B"), snapshot("a", "B"), search{missing: set("a"), left: 2}},
		{"lost for good", search{missing: set("a")}, snapshot("a", "B"), snapshot("a", "B"), search{missing: set("a")}},
		{"another is lost", search{missing: set("a"), left: 1}, snapshot("a", "B"), snapshot("a", "b"), search{missing: set("a", "b"), left: searches}},
		{"one is found, one is not", search{missing: set("a", "b"), left: 3}, snapshot("a", "b"), snapshot("A", "b"), search{missing: set("b"), left: 2}},
		{"found", search{missing: set("a"), left: 3}, snapshot("a", "B"), snapshot("A", "B"), search{left: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.search.next(tt.before, tt.after)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(search{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if isWaiting := got.timer() != nil; isWaiting != (got.left > 0 && len(got.missing) > 0) {
				t.Errorf("it waits to look again: %t, with %+v", isWaiting, got)
			}
		})
	}
}

func set(ids ...string) map[string]bool {
	s := map[string]bool{}
	for _, id := range ids {
		s[id] = true
	}
	return s
}
