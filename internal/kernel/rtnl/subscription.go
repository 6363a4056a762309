package rtnl

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrOverrun says that the kernel dropped events because they were not read
// fast enough: whoever keeps a picture of the namespace must read everything
// again. The subscription goes on with the events that come next; those that
// still waited are dropped too.
var ErrOverrun = errors.New("events were lost: read everything again")

// Group is a kind of thing that events are about.
type Group string

// The groups that can be subscribed to, IPv4 and IPv6 where that matters.
const (
	Links      Group = "links"
	Addresses  Group = "addresses"
	Routes     Group = "routes"
	Rules      Group = "rules"
	Neighbours Group = "neighbours"
)

// Event says that something is there, new or changed, or that it is gone. The
// field that Kind names is set and shows its state after the change, or before
// its end.
type Event struct {
	Kind      Group      `json:"kind"`
	Deleted   bool       `json:"deleted,omitempty"`
	Link      *Link      `json:"link,omitempty"`
	Address   *Address   `json:"address,omitempty"`
	Route     *Route     `json:"route,omitempty"`
	Rule      *Rule      `json:"rule,omitempty"`
	Neighbour *Neighbour `json:"neighbour,omitempty"`
}

// Subscription receives events of one network namespace. One goroutine may
// receive from it while another closes it.
type Subscription struct {
	conn   *netlink.Conn
	closed atomic.Bool
}

// Subscribe begins to queue events of the groups; a nil config is the zero
// Config. Who subscribes first and then reads the lists misses nothing.
func Subscribe(config *Config, groups ...Group) (*Subscription, error) {
	var bitmap uint32
	for _, g := range groups {
		bit, err := g.bitmap()
		if err != nil {
			return nil, err
		}
		bitmap |= bit
	}
	if bitmap == 0 {
		return nil, errors.New("rtnetlink: no groups to subscribe to")
	}
	conn, err := dial(config, bitmap)
	if err != nil {
		return nil, err
	}
	return NewSubscription(conn), nil
}

// NewSubscription returns a Subscription on a NETLINK_ROUTE connection that is
// a member of the groups, and closes it when the subscription is closed.
func NewSubscription(conn *netlink.Conn) *Subscription { return &Subscription{conn: conn} }

// bitmap returns the multicast groups of the kernel that a group stands for.
func (g Group) bitmap() (uint32, error) {
	const one = uint32(1)
	switch g {
	case Links:
		return one << (unix.RTNLGRP_LINK - 1), nil
	case Addresses:
		return one<<(unix.RTNLGRP_IPV4_IFADDR-1) | one<<(unix.RTNLGRP_IPV6_IFADDR-1), nil
	case Routes:
		return one<<(unix.RTNLGRP_IPV4_ROUTE-1) | one<<(unix.RTNLGRP_IPV6_ROUTE-1), nil
	case Rules:
		return one<<(unix.RTNLGRP_IPV4_RULE-1) | one<<(unix.RTNLGRP_IPV6_RULE-1), nil
	case Neighbours:
		return one << (unix.RTNLGRP_NEIGH - 1), nil
	}
	return 0, fmt.Errorf("rtnetlink group %q: want %q, %q, %q, %q or %q", g, Links, Addresses, Routes, Rules, Neighbours)
}

// Receive waits for events and returns them in the order in which they
// happened. After Close it returns an error that is fs.ErrClosed, and after
// events were lost one that is ErrOverrun. Events that could be decoded are
// returned together with the errors of those that could not.
func (s *Subscription) Receive() ([]Event, error) {
	for {
		msgs, err := s.conn.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
			drain(s.conn)
			return nil, fmt.Errorf("rtnetlink: %w", ErrOverrun)
		case s.closed.Load(): // the runtime's own error for that is not fs.ErrClosed
			return nil, fmt.Errorf("rtnetlink events: %w", fs.ErrClosed)
		case err != nil:
			return nil, fmt.Errorf("rtnetlink events: %w", err)
		}
		if events, err := parseEvents(msgs); events != nil || err != nil {
			return events, err
		}
	}
}

// drain drops what waits. The kernel says ENOBUFS once and then goes on dropping
// events, in silence, until the queue has been empty (netlink_overrun and
// netlink_rcv_wake in net/netlink/af_netlink.c): without drain, events that
// come after ErrOverrun would be lost with no error.
func drain(conn *netlink.Conn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return // no socket of the kernel
	}
	_ = raw.Control(func(fd uintptr) { // fails when closed, which the next Receive says
		for {
			_, _, _, _, err := unix.Recvmsg(int(fd), make([]byte, 1), nil, unix.MSG_DONTWAIT)
			if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
}

// Close ends the subscription and a Receive that waits.
func (s *Subscription) Close() error {
	s.closed.Store(true)
	return s.conn.Close()
}

func parseEvents(msgs []netlink.Message) ([]Event, error) {
	var events []Event
	var errs []error
	for _, m := range msgs {
		if !ours(m.Header.Type, m.Data) {
			continue
		}
		e, err := parseEvent(m)
		switch {
		case err != nil:
			errs = append(errs, err)
		case e.Kind != "":
			events = append(events, e)
		}
	}
	return events, errors.Join(errs...)
}

// parseEvent decodes one event. It has no Kind if the message is not one.
func parseEvent(m netlink.Message) (e Event, err error) {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		e = Event{Kind: Links, Deleted: m.Header.Type == unix.RTM_DELLINK}
		e.Link, err = pointer(parseLink(m.Data))
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		e = Event{Kind: Addresses, Deleted: m.Header.Type == unix.RTM_DELADDR}
		e.Address, err = pointer(parseAddress(m.Data))
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		e = Event{Kind: Routes, Deleted: m.Header.Type == unix.RTM_DELROUTE}
		e.Route, err = pointer(parseRoute(m.Data))
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		e = Event{Kind: Rules, Deleted: m.Header.Type == unix.RTM_DELRULE}
		e.Rule, err = pointer(parseRule(m.Data))
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		e = Event{Kind: Neighbours, Deleted: m.Header.Type == unix.RTM_DELNEIGH}
		e.Neighbour, err = pointer(parseNeighbour(m.Data))
	}
	return e, err
}

func pointer[T any](v T, err error) (*T, error) { return &v, err }
