package fakekernel

import (
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/uevent"
)

// eventKind is a way by which a kernel says something by itself.
type eventKind uint8

const (
	routeEvents eventKind = iota
	rdmaEvents
	uevents
)

// listeners are all who listen to a Kernel.
type listeners struct {
	sequence atomic.Uint64 // of uevents
	mu       sync.Mutex
	set      map[*listener]bool
}

func (s *listeners) all() []*listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.set))
}

func (s *listeners) add(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set = with(s.set, l, true)
}

func (s *listeners) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.set, l)
}

// listener is a socket that events come to: of netlink, or of uevents, each of
// which is one Read.
type listener struct {
	kind   eventKind
	groups []rtnl.Group
	of     *listeners

	mu     sync.Mutex
	queue  []netlink.Message
	lost   bool
	ready  chan struct{} // has an element when something may be there
	closed chan struct{}
	close  func()
}

func (k *Kernel) listen(kind eventKind, groups ...rtnl.Group) *listener {
	l := &listener{kind: kind, groups: groups, of: &k.heard, ready: make(chan struct{}, 1), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	k.heard.add(l)
	return l
}

func (l *listener) conn() *netlink.Conn { return netlink.NewConn(l, port) }

// Close ends a receive that waits.
func (l *listener) Close() error {
	l.of.remove(l)
	l.close()
	return nil
}

// Send refuses: nothing is asked here.
func (*listener) Send(netlink.Message) error { return unix.EOPNOTSUPP }

// SendMessages refuses, too.
func (*listener) SendMessages([]netlink.Message) error { return unix.EOPNOTSUPP }

// Receive waits for events and returns all that there are.
func (l *listener) Receive() ([]netlink.Message, error) { return l.take(maxEvents) }

// ReceiveIter does the same.
func (l *listener) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		messages, err := l.Receive()
		if err != nil {
			yield(netlink.Message{}, err)
		}
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Read waits for an event and returns what it says.
func (l *listener) Read(b []byte) (int, error) {
	messages, err := l.take(1)
	switch {
	case err == unix.ENOBUFS: //nolint:errorlint // it is ours
		return 0, uevent.ErrOverrun
	case err != nil:
		return 0, err
	}
	return copy(b, messages[0].Data), nil
}

// take waits for events and takes up to a number of them.
func (l *listener) take(most int) ([]netlink.Message, error) {
	for {
		messages, err := l.poll(most)
		if err != nil || len(messages) > 0 {
			return messages, err
		}
		select {
		case <-l.ready:
		case <-l.closed:
		}
	}
}

func (l *listener) poll(most int) ([]netlink.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return nil, fs.ErrClosed
	default:
	}
	if l.lost {
		l.lost = false
		return nil, unix.ENOBUFS
	}
	n := min(most, len(l.queue))
	messages := l.queue[:n:n]
	l.queue = l.queue[n:]
	return messages, nil
}

// maxEvents is how many events wait for a listener before it loses them.
const maxEvents = 10_000

func (l *listener) deliver(m netlink.Message) {
	l.mu.Lock()
	l.queue = append(l.queue, m)
	full := len(l.queue) > maxEvents
	l.mu.Unlock()
	if full {
		l.overrun()
		return
	}
	l.wake()
}

// overrun drops what waits.
func (l *listener) overrun() {
	l.mu.Lock()
	l.queue, l.lost = nil, true
	l.mu.Unlock()
	l.wake()
}

func (l *listener) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}
