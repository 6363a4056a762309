package probe

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// retry is how soon a parent is tried again on which listening failed, though
// nothing is known to have changed.
const retry = time.Minute

// listening is the sockets of one Run of a Watcher. All but the readers is done
// on Run's goroutine.
type listening struct {
	watcher *Watcher
	links   links
	ears    map[place]*ear
	deaf    map[string]string // parents that could not be listened on, and what was told of them
	again   *time.Timer       // when to try again what failed

	changes chan change
	heard   chan hearing
	ended   chan struct{}
	readers sync.WaitGroup // and who closes sockets
}

// place is what there is one socket for. IPv6 has its own, for parents with
// claims of IPv6 only: it sees all packets of IPv6, where that of ARP is given
// none but ARP's and costs a busy link nothing.
type place struct {
	parent   string
	protocol uint16 // ETH_P_ARP or ETH_P_IPV6
}

// compare has a parent's places be in one order each time.
func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.parent, o.parent), cmp.Compare(p.protocol, o.protocol))
}

// ear is one socket.
type ear struct {
	wire    *wire
	index   int // of the link
	version int // of the addresses that it hears of
}

// hearing is what was seen on a parent.
type hearing struct {
	parent string
	sighting
}

// wanted is what a place is to hear of.
type wanted struct {
	version int
	addrs   []netip.Addr
}

func newListening(w *Watcher) *listening {
	return &listening{
		watcher: w,
		ears:    map[place]*ear{},
		deaf:    map[string]string{},
		again:   time.NewTimer(retry),
		changes: make(chan change),
		heard:   make(chan hearing),
		ended:   make(chan struct{}),
	}
}

// open begins to follow the links, and listens.
func (l *listening) open() error {
	if err := l.links.open(l.watcher.netnsFD); err != nil {
		return err
	}
	l.readers.Go(func() { l.links.read(l.changes, l.ended) })
	l.adjust()
	return nil
}

// close ends the readers and waits until all sockets are closed.
func (l *listening) close() {
	close(l.ended)
	l.again.Stop()
	l.links.close()
	for p := range l.ears {
		l.shut(p)
	}
	l.readers.Wait()
}

// adjust listens where there are claims and links, and nowhere else.
func (l *listening) adjust() {
	places := l.watcher.places()
	for p := range l.ears {
		if _, ok := places[p]; !ok {
			l.shut(p)
		}
	}
	failed := map[string]error{}
	for _, p := range slices.SortedFunc(maps.Keys(places), place.compare) {
		if err := l.listen(p, places[p]); err != nil {
			failed[p.parent] = fmt.Errorf("listen on %s for claims to addresses of pods: %w", p.parent, err)
		}
	}
	l.tell(failed)
	l.again.Reset(retry)
}

// tell tells of the parents on which listening failed, once until it fails otherwise
// or works again.
func (l *listening) tell(failed map[string]error) {
	maps.DeleteFunc(l.deaf, func(parent, _ string) bool { return failed[parent] == nil })
	for parent, err := range failed {
		if l.deaf[parent] != err.Error() {
			l.deaf[parent] = err.Error()
			l.watcher.onDeaf(err)
		}
	}
}

// places returns what is to be heard where.
func (w *Watcher) places() map[place]wanted {
	w.mu.Lock()
	defer w.mu.Unlock()
	places := map[place]wanted{}
	for parent, h := range w.parents {
		for addr := range h.claims {
			p := place{parent, unix.ETH_P_ARP}
			if addr.Is6() {
				p.protocol = unix.ETH_P_IPV6
			}
			places[p] = wanted{h.version, append(places[p].addrs, addr)}
		}
	}
	return places
}

// listen makes one socket what it is to be. A link that was renamed is still the
// parent unless there is another of its name. What fails is tried again, with a new
// socket.
func (l *listening) listen(p place, want wanted) error {
	index, exists := l.links.byName(p.parent)
	e := l.ears[p]
	switch {
	case e != nil && (!exists || e.index == index):
		if e.version == want.version {
			return nil
		}
		e.version = want.version
		err := e.wire.narrow(want.addrs)
		if err != nil {
			l.shut(p)
		}
		return err
	case e != nil:
		l.shut(p)
	}
	if !exists {
		return nil
	}
	return l.start(p, index, want)
}

// start opens a socket and its reader.
func (l *listening) start(p place, index int, want wanted) error {
	wire, err := openWire(l.watcher.netnsFD)
	if err != nil {
		return err
	}
	if err := wire.hear(index, p.protocol, want.addrs); err != nil {
		wire.closeIn(&l.readers)
		return err
	}
	l.ears[p] = &ear{wire: wire, index: index, version: want.version}
	l.readers.Go(func() { l.read(p.parent, wire) })
	return nil
}

// shut closes a socket, which ends its reader.
func (l *listening) shut(p place) {
	l.ears[p].wire.closeIn(&l.readers)
	delete(l.ears, p)
}

// forget closes the sockets on a link that is gone: should another get its
// number, they would not hear it. Index 0 stands for all links.
func (l *listening) forget(index int) {
	for p, e := range l.ears {
		if index == 0 || e.index == index {
			l.shut(p)
		}
	}
}

// read passes on what is seen on a parent until the socket is closed.
func (l *listening) read(parent string, w *wire) {
	buf := make([]byte, frameBuffer)
	for {
		seen, err := w.receive(buf)
		if err != nil {
			return
		}
		select {
		case l.heard <- hearing{parent, seen.sighting}:
		case <-l.ended:
			return
		}
	}
}
