// Package probe asks on the wire, before a pod starts, whether the gateways of
// its rails are there and whether its addresses are anybody else's, and watches
// afterwards that they stay its own.
//
// All rails of a pod are asked at once: gateways by the kernel's own neighbour
// tables, so that their addresses are known when the first packet is sent, and
// conflicts by RFC 5227 and RFC 4862 on one packet socket.
package probe

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// What the zero values of a [Detection] stand for.
const (
	DefaultRetries  = 3
	DefaultTimeout  = 100 * time.Millisecond
	DefaultInterval = 10 * time.Millisecond
)

// Target is an interface of a pod and what is to be asked about it. It is up
// and has its addresses already.
type Target struct {
	Interface string // its name in the pod
	Index     int    // its index there
	Rail      int
	MAC       net.HardwareAddr
	Parent    string // the netdev of the node below it; only errors name it
	Addresses []Address
	Gateways  []netip.Addr
	Detect    Detection
}

// Address is one of an interface's.
type Address struct {
	Addr netip.Addr
	// Doubtful says that somebody else may well have it. It is probed with more
	// patience, and whatever Detect says.
	Doubtful bool
}

// Detection says what is asked. The zero values of the numbers stand for
// [DefaultRetries], [DefaultTimeout] and [DefaultInterval].
type Detection struct {
	Gateway, Conflict bool
	// Retries is how many requests there are for an address, the first among
	// them.
	Retries int
	// Timeout is how long each request for a gateway is waited for, and how long
	// all probes for an address that is not doubtful take.
	Timeout time.Duration
	// Interval is the time between two of those probes.
	Interval time.Duration
}

// orDefault fills in what is not set.
func (d Detection) orDefault() Detection {
	if d.Retries <= 0 {
		d.Retries = DefaultRetries
	}
	if d.Timeout <= 0 {
		d.Timeout = DefaultTimeout
	}
	if d.Interval <= 0 {
		d.Interval = DefaultInterval
	}
	return d
}

// Prober asks. The zero value is ready; it is safe for concurrent use.
//
// The kernel takes some 16 ms to close a packet socket. A Prober does that in
// the background, and such a socket keeps its network namespace alive.
type Prober struct {
	background sync.WaitGroup
	patience   time.Duration // of tests; 0: patience
}

// Wait waits until all sockets are closed that the calls which have returned
// have left. No other call may begin meanwhile.
func (p *Prober) Wait() { p.background.Wait() }

// Run asks about all targets at the same time, in the network namespace that
// netnsFD refers to, 0 for that of the calling thread, which is the node's: the
// parents of ipvlan interfaces are there. Gateways are asked for where a
// target's Detect says so, addresses where it says so or they are doubtful. A
// gateway is well that answers any of its requests; an address is well when
// nobody has shown that he has it, or wants it, by the end of the wait.
// Interfaces with addresses other than Ethernet's, IPoIB, are not asked for
// conflicts, and no result says they were.
//
// It ends as soon as all is known, and at the latest after the time that the
// targets' Detect allow: in about a millisecond where only gateways are asked
// for and all answer. An interface that is down or without a carrier, or, for
// gateways of IPv6, whose link-local address the kernel still checks, has five
// more seconds. What is not known when ctx ends has ctx's error as its own.
//
// An error of Run itself means that nobody could be asked. It needs
// CAP_NET_ADMIN and CAP_NET_RAW in that namespace, and CAP_SYS_ADMIN to enter
// another.
func (p *Prober) Run(ctx context.Context, netnsFD int, targets []Target) (Report, error) {
	s := newSession(netnsFD, &p.background, targets)
	s.patience = cmp.Or(p.patience, patience)
	if len(s.gateways)+len(s.suspects) == 0 {
		return Report{}, nil
	}
	if err := s.open(); err != nil {
		s.close()
		return Report{}, err
	}
	defer s.close()
	s.run(ctx)
	return s.report(), nil
}
