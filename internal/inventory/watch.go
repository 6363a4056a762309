package inventory

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Events come in bursts: a driver that binds makes dozens. A snapshot is built
// when they have paused for settle, or at the latest after patience.
const (
	settle   = 50 * time.Millisecond
	patience = 500 * time.Millisecond
)

// A device on its way to another namespace is nowhere for a moment, and its
// arrival makes no event here. So while a device that was there is missing, it
// is looked for again after searchFirst, then ever more rarely, searches times.
const (
	searchFirst = 100 * time.Millisecond
	searches    = 6
)

// Some things change without an event here: the state of an InfiniBand port
// without a netdev, and all in a pod. So what netlink tells is read once in a
// while too, which costs milliseconds.
const refresh = time.Minute

// Watcher keeps a snapshot of the node up to date from the kernel's events. It
// is safe for concurrent use.
type Watcher struct {
	read    func(prev *Facts, changed Changes) *Facts
	listen  func() (*listener, error)
	options Options
	heard   heard

	current atomic.Pointer[Snapshot]
	mu      sync.Mutex
	changed chan struct{}
}

// NewWatcher returns a Watcher of the node that r reads. It has no snapshot
// until Run has made the first.
func NewWatcher(r *Reader, options Options) *Watcher {
	return newWatcher(r.Read, func() (*listener, error) {
		if r.node == nil {
			return nil, errors.New("a copy of a node does not change")
		}
		loaded, _ := r.hasRDMA() // the error is among the problems of each snapshot
		return listen(r.node, loaded)
	}, options)
}

func newWatcher(read func(*Facts, Changes) *Facts, listen func() (*listener, error), options Options) *Watcher {
	return &Watcher{read: read, listen: listen, options: options, changed: make(chan struct{})}
}

// Snapshot returns the newest snapshot, or nil before the first.
func (w *Watcher) Snapshot() *Snapshot { return w.current.Load() }

// Changed returns a channel that is closed when a newer snapshot than the
// present one is published. Take the channel first and the snapshot second, and
// no change is missed.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Run publishes snapshots until ctx ends, and returns its error. It listens
// before it reads, so that nothing falls in between. It fails at once when the
// kernel's events cannot be had: that needs no privilege, only the network
// namespace whose devices are watched.
func (w *Watcher) Run(ctx context.Context) error {
	l, err := w.listen()
	if err != nil {
		return err
	}
	if l.rdma != nil {
		w.heard.begin()
		l.heard = w.heard.count
	}
	events := make(chan Changes)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.run(ctx, events) })
	group.Go(func() error { return w.run(ctx, events) })
	return group.Wait()
}

// run reads everything once, then what events say.
func (w *Watcher) run(ctx context.Context, events <-chan Changes) error {
	facts := w.read(nil, everything())
	w.publish(Join(facts, w.options))
	s := search{}
	for {
		again := s.timer()
		if again == nil {
			again = time.After(refresh)
		}
		changed, err := w.await(ctx, events, again)
		if err != nil {
			return err
		}
		before := w.Snapshot()
		facts = w.read(facts, changed)
		after := Join(facts, w.options)
		s = s.next(before, after)
		w.publish(after)
	}
}

// await collects changes until they pause. It returns an empty change when it
// is time to look again.
func (w *Watcher) await(ctx context.Context, events <-chan Changes, again <-chan time.Time) (Changes, error) {
	var changed Changes
	var quiet, latest <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return changed, ctx.Err()
		case c := <-events:
			changed.merge(c)
			quiet = time.After(settle)
			if latest == nil {
				latest = time.After(patience)
			}
		case <-quiet:
			return changed, nil
		case <-latest:
			return changed, nil
		case <-again:
			return changed, nil
		}
	}
}

// publish makes s the newest snapshot, if it differs from the present one.
func (w *Watcher) publish(s *Snapshot) {
	if old := w.Snapshot(); old != nil && reflect.DeepEqual(old, s) {
		return
	}
	w.current.Store(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// search is the search for devices that went missing.
type search struct {
	missing map[string]bool // IDs of devices
	left    int             // how often to look again
}

// timer returns a channel that fires when it is time to look again.
func (s search) timer() <-chan time.Time {
	if s.left == 0 || len(s.missing) == 0 {
		return nil
	}
	return time.After(searchFirst << (searches - s.left))
}

// next updates the search by what two snapshots show.
func (s search) next(before, after *Snapshot) search {
	missing := lost(before, after)
	for id := range s.missing {
		if d, ok := after.Device(id); ok && d.RDMA == nil {
			missing[id] = true
		}
	}
	for id := range missing {
		if !s.missing[id] {
			return search{missing: missing, left: searches}
		}
	}
	return search{missing: missing, left: max(0, s.left-1)}
}

// lost returns the devices whose function is still there while its RDMA device
// is not.
func lost(before, after *Snapshot) map[string]bool {
	ids := map[string]bool{}
	for i := range before.Devices {
		id := before.Devices[i].ID
		if before.Devices[i].RDMA == nil {
			continue
		}
		if d, ok := after.Device(id); ok && d.RDMA == nil && d.PCI != nil && d.PCI.Driver != "" {
			ids[id] = true
		}
	}
	return ids
}
