// Package rtnl reads network state by rtnetlink: links, addresses, routes,
// rules, neighbours, the VFs of a PF and priority flow control, once by a
// [Client] or, but for the last two, as they change by a [Subscription]. Links,
// addresses, routes, rules and neighbours it also makes, changes and removes,
// many at a time, by [Client.Do]; what was read can be written back.
//
// It keeps no cache, starts no goroutines and never logs. Reading needs no
// privileges. Attributes that it has no name for are left out, values that it
// has no name for are given in decimal, and one malformed message never hides
// the others.
package rtnl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrInterrupted says that a list kept changing while it was read, so that an
// entry may be missing or be there twice. Reading it again later may succeed.
var ErrInterrupted = errors.New("the list changed while it was read")

// dumpAttempts bounds how often a list that changes while it is read is read.
// Lists of up to about 30 links come in one piece and cannot be interrupted.
const dumpAttempts = 10

// Config says where to open a socket. The zero value is the namespace of the
// calling thread.
type Config struct {
	// NetNS is a file descriptor of the network namespace to work on, 0 for that
	// of the calling thread. Another one needs CAP_SYS_ADMIN. The socket keeps
	// the namespace alive until it is closed.
	NetNS int
}

// Client asks the kernel about one network namespace and changes it. It is safe
// for concurrent use; requests, and batches of them, are answered one at a time.
//
// An error that the kernel answers with is an [*Error]. Lists are returned as
// far as they could be decoded, together with the errors of the rest.
type Client struct {
	mu     sync.Mutex // held from a request to its last answer
	conn   *netlink.Conn
	socket *routeSocket // of conn; nil if that is somebody else's
}

// Dial opens a client; a nil config is the zero Config.
func Dial(config *Config) (*Client, error) {
	s, port, err := openSocket(config, 0)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	return &Client{conn: netlink.NewConn(s, port), socket: s}, nil
}

// New returns a client that uses conn, a NETLINK_ROUTE connection, and closes
// it when the client is closed.
//
// A client made by Dial notices every interrupted list; through other
// connections, an interruption that only the last message speaks of is missed.
func New(conn *netlink.Conn) *Client { return &Client{conn: conn} }

// Close closes the client's socket.
func (c *Client) Close() error { return c.conn.Close() }

// Cookie returns the cookie of the client's network namespace (SO_NETNS_COOKIE),
// which none had before it since the node was started and none gets after it. It
// is 0 where there is none: before Linux 5.14, and over a connection of [New].
func (c *Client) Cookie() (uint64, error) {
	if c.socket == nil {
		return 0, nil
	}
	var cookie uint64
	var err error
	if closed := c.socket.raw.Control(func(fd uintptr) {
		cookie, err = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	}); closed != nil {
		return 0, fmt.Errorf("cookie of the network namespace: %w", fs.ErrClosed)
	}
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("cookie of the network namespace: %w", os.NewSyscallError("getsockopt", err))
	}
	return cookie, nil
}

// get sends a request for one object and returns the only answer.
func (c *Client) get(object string, typ netlink.HeaderType, request []byte) (netlink.Message, error) {
	msgs, err := c.execute(message(typ, netlink.Request, request))
	if err != nil {
		return netlink.Message{}, refused(object, typ, err)
	}
	if len(msgs) != 1 {
		return netlink.Message{}, fmt.Errorf("%s: %s: %d answers, want 1", object, typeName(typ), len(msgs))
	}
	return msgs[0], nil
}

// dump sends a request for a list and returns one that nothing interrupted.
func (c *Client) dump(object string, typ netlink.HeaderType, request []byte) ([]netlink.Message, error) {
	for range dumpAttempts {
		msgs, err := c.execute(message(typ, netlink.Request|netlink.Dump, request))
		switch {
		case errors.Is(err, ErrInterrupted) || interrupted(msgs):
			continue
		case err != nil:
			return nil, refused(object, typ, err)
		}
		return msgs, nil
	}
	return nil, fmt.Errorf("%s: %s: %w, %d times in a row", object, typeName(typ), ErrInterrupted, dumpAttempts)
}

// execute sends a request and returns the answers. After answers that could not
// be received, what is left of them is dropped, lest it be taken for those to
// the next request.
func (c *Client) execute(request netlink.Message) ([]netlink.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	msgs, err := c.conn.Execute(request)
	if err != nil && !isRefusal(err) {
		drain(c.conn)
	}
	return msgs, err
}

func message(typ netlink.HeaderType, flags netlink.HeaderFlags, data []byte) netlink.Message {
	return netlink.Message{Header: netlink.Header{Type: typ, Flags: flags}, Data: data}
}

func interrupted(msgs []netlink.Message) bool {
	for _, m := range msgs {
		if m.Header.Flags&netlink.DumpInterrupted != 0 {
			return true
		}
	}
	return false
}

// dumpIP lists something that there is for IPv4 and for IPv6, with a request
// that is a header of a size. Each family has a dump of its own: in one for
// both, the kernel forgets at the end of the first that it was interrupted.
func dumpIP[T any](c *Client, object string, typ, answer netlink.HeaderType, size int, parse func([]byte) (T, error)) ([]T, error) {
	var all []T
	var errs []error
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, size)
		request[0] = family
		msgs, err := c.dump(object, typ, request)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// To a request for a family that it does not have, a kernel answers
		// with all those that it has.
		values, err := decode(msgs, answer, family, parse)
		all, errs = append(all, values...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// decode parses the messages of a type and family, leaving out those that are
// not ours.
func decode[T any](msgs []netlink.Message, typ netlink.HeaderType, family byte, parse func([]byte) (T, error)) ([]T, error) {
	values := make([]T, 0, len(msgs))
	var errs []error
	for _, m := range msgs {
		if m.Header.Type != typ || !ours(typ, m.Data) || len(m.Data) > 0 && m.Data[0] != family {
			continue
		}
		v, err := parse(m.Data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		values = append(values, v)
	}
	return values, errors.Join(errs...)
}

// ours reports whether a message is about something that this package has a
// type for. Every rtnetlink message begins with a family. A message about a
// link that names one is about its bridge port or its IPv6 settings: taking
// the end of those for the end of the link would be wrong. The others are
// about IPv4 and IPv6, bridges, multicast routing and more.
func ours(typ netlink.HeaderType, b []byte) bool {
	if len(b) == 0 {
		return true // let the parser say what is wrong with it
	}
	switch typ {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return b[0] == unix.AF_UNSPEC
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return isIP(b[0]) && !isCloned(b)
	default:
		return isIP(b[0])
	}
}

func isIP(family byte) bool { return family == unix.AF_INET || family == unix.AF_INET6 }
