package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// quiet is how long nothing more is said about an address that was reported.
const quiet = time.Minute

// Claim says that an address is ours.
type Claim struct {
	Addr  netip.Addr
	MAC   net.HardwareAddr // of the interface that has it
	Owner string           // who has it, for people: a pod
}

// Conflict is another host with, or in want of, one of our addresses.
type Conflict struct {
	Parent string
	Addr   netip.Addr
	MAC    net.HardwareAddr // of the other host
	Owner  string           // of our claim
	At     time.Time
	Kind   Kind // KindClaim or KindProbe
}

// Watcher sees others claim the addresses of pods, by what they send to
// everybody: ARP requests, gratuitous ARP, advertisements to all nodes, and
// probes of both families (RFC 5227 2.4, RFC 4862 5.4). It listens on the
// parents of the pods' interfaces, whichever of these there are.
//
// An address may be claimed by the MAC addresses of its owner's claims, on
// whatever parent. Probes by interfaces of this node, claimed ones or links of
// the watched namespace, are no conflicts.
//
// Its methods may be called concurrently.
type Watcher struct {
	netnsFD    int
	onConflict func(Conflict)
	onDeaf     func(error)
	now        func() time.Time
	poke       chan struct{} // claims have changed

	mu      sync.Mutex
	parents map[string]*holdings
}

// holdings are the claims on one parent.
type holdings struct {
	version  int // of the set of addresses
	claims   map[netip.Addr]Claim
	reported map[netip.Addr]time.Time // last
}

// NewWatcher returns a Watcher of the links of a network namespace, of that of
// the thread that calls Run if netnsFD is 0. The namespace must stay open while
// Run runs. onConflict is called on Run's goroutine, which sees nothing until it
// returns, and at most once a minute for an address on a parent; likewise onDeaf, once
// for a parent that exists and that it cannot listen on. It tries that again at each
// change, and once a minute.
func NewWatcher(netnsFD int, onConflict func(Conflict), onDeaf func(error)) *Watcher {
	return &Watcher{
		netnsFD:    netnsFD,
		onConflict: onConflict,
		onDeaf:     onDeaf,
		now:        time.Now,
		poke:       make(chan struct{}, 1),
		parents:    map[string]*holdings{},
	}
}

// Claim adds claims on a parent, which need not exist yet. A claim replaces that
// of its address.
func (w *Watcher) Claim(parent string, claims ...Claim) {
	if len(claims) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.parents[parent]
	if h == nil {
		h = &holdings{claims: map[netip.Addr]Claim{}, reported: map[netip.Addr]time.Time{}}
		w.parents[parent] = h
	}
	for _, c := range claims {
		if _, known := h.claims[c.Addr]; !known {
			h.version++
		}
		h.claims[c.Addr] = c
	}
	w.changed()
}

// Unclaim removes the claims of addresses on a parent. A parent without claims
// is no longer listened on.
func (w *Watcher) Unclaim(parent string, addrs ...netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.parents[parent]
	if h == nil {
		return
	}
	for _, a := range addrs {
		if _, known := h.claims[a]; known {
			h.version++
		}
		delete(h.claims, a)
		delete(h.reported, a)
	}
	if len(h.claims) == 0 {
		delete(w.parents, parent)
	}
	w.changed()
}

// changed has Run look at the claims.
func (w *Watcher) changed() {
	select {
	case w.poke <- struct{}{}:
	default: // it will look anyway
	}
}

// Run watches until ctx ends, for which it returns nil; then all its sockets
// are closed. It runs once at a time. An error means that it cannot follow the links of the namespace.
// It needs CAP_NET_RAW there, and CAP_SYS_ADMIN to enter another than that of
// the calling thread.
func (w *Watcher) Run(ctx context.Context) error {
	l := newListening(w)
	defer l.close()
	if err := l.open(); err != nil {
		return fmt.Errorf("watch for conflicts: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.poke:
			l.adjust()
		case change := <-l.changes:
			if err := l.links.take(change, l.forget); err != nil {
				return fmt.Errorf("watch for conflicts: %w", err)
			}
			l.adjust()
		case <-l.again.C:
			l.adjust()
		case h := <-l.heard:
			if c, ok := w.judge(h.parent, h.sighting, l.links.isOurs(h.hardware())); ok {
				w.onConflict(c)
			}
		}
	}
}

// judge returns the conflict that a sighting is, if it is one that is to be
// reported. ofNode says that the MAC address is one of the node's links.
func (w *Watcher) judge(parent string, s sighting, ofNode bool) (Conflict, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.parents[parent]
	if h == nil {
		return Conflict{}, false
	}
	c, ok := h.claims[s.addr]
	if !ok || w.isOwn(c, s, ofNode) {
		return Conflict{}, false
	}
	now := w.now()
	if last, ok := h.reported[s.addr]; ok && now.Sub(last) < quiet {
		return Conflict{}, false
	}
	h.reported[s.addr] = now
	return Conflict{Parent: parent, Addr: s.addr, MAC: s.hardware(), Owner: c.Owner, At: now, Kind: s.kind()}, true
}

// isOwn reports whether a sighting of a claimed address is none of another's.
// The interfaces of a pod may answer for each other where they are on one link,
// and who asks for an address on this node is about to claim it.
func (w *Watcher) isOwn(c Claim, s sighting, ofNode bool) bool {
	if string(c.MAC) == string(s.mac[:]) || s.probe && ofNode {
		return true
	}
	for _, h := range w.parents {
		for _, other := range h.claims {
			if string(other.MAC) == string(s.mac[:]) && (s.probe || other.Owner == c.Owner) {
				return true
			}
		}
	}
	return false
}
