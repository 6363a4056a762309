// Package rdmanl asks the kernel about RDMA devices over NETLINK_RDMA, its
// nldev client: which devices and ports there are and in which state, what
// they count, who uses them, which character devices belong to them, and
// whether network namespaces share them. It moves a device to another
// namespace, binds queue pairs to counters of their own, and hears of devices
// that come and go.
//
// It never reads sysfs, never creates or renames devices, and knows nothing of
// pods. What a socket sees depends on the
// network namespace it was opened in: all devices in shared mode, those of the
// namespace in exclusive mode.
//
// The source is drivers/infiniband/core/nldev.c and
// include/uapi/rdma/rdma_netlink.h, up to Linux 7.2. Attributes and values that
// are newer pass through under their number.
package rdmanl

import (
	"errors"
	"sync"
	"syscall"

	"github.com/mdlayher/netlink"
)

// Config says how a socket is opened. The zero value opens it where the caller
// is.
type Config struct {
	// NetNS is a file descriptor of the network namespace the socket is opened
	// in; 0 is that of the calling thread. It is needed during Dial only, and
	// entering another namespace takes CAP_SYS_ADMIN. The socket keeps the
	// namespace alive until it is closed.
	NetNS int
}

// Client is a connection to nldev. All reading methods work without
// privileges, where nothing else is said. A Client is safe for concurrent use;
// requests wait for each other.
type Client struct {
	mu   sync.Mutex // held from a request to its last reply
	conn *netlink.Conn
}

// Dial opens a Client. The kernel loads ib_core for it where that is a module.
// The error is ErrNotSupported on a kernel without NETLINK_RDMA.
func Dial(config *Config) (*Client, error) {
	conn, err := dial(config)
	if err != nil {
		return nil, err
	}
	return New(conn), nil
}

// New returns a Client on a connection to NETLINK_RDMA, or to something that
// answers like it. The Client owns the connection.
func New(conn *netlink.Conn) *Client { return &Client{conn: conn} }

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

func dial(config *Config) (*netlink.Conn, error) {
	var nc netlink.Config
	if config != nil {
		nc.NetNS = config.NetNS
	}
	conn, err := netlink.Dial(family, &nc)
	if err != nil {
		return nil, dialError(err)
	}
	if err := conn.SetOption(netlink.ExtendedAcknowledge, true); err != nil {
		return nil, errors.Join(dialError(err), conn.Close())
	}
	return conn, nil
}

// request is a message to nldev before it is encoded.
type request struct {
	command Command
	device  *uint32 // nil where the command is not about one device
	port    *int    // nil where the command is not about one port
	more    func(*netlink.AttributeEncoder)
}

// changes tells whether the request is more than a question.
func (r request) changes() bool {
	return r.command == CmdSet || r.command == CmdSysSet || r.command == CmdStatSet || r.command == CmdStatDel
}

func (r request) encode(flags netlink.HeaderFlags) (netlink.Message, error) {
	ae := netlink.NewAttributeEncoder()
	if r.device != nil {
		ae.Uint32(AttrDevIndex, *r.device)
	}
	if r.port != nil {
		ae.Uint32(AttrPortIndex, uint32(*r.port))
	}
	if r.more != nil {
		r.more(ae)
	}
	data, err := ae.Encode()
	return netlink.Message{
		Header: netlink.Header{Type: r.command.HeaderType(), Flags: netlink.Request | flags},
		Data:   data,
	}, err
}

// get asks for one thing and returns the attributes of the answer.
func (c *Client) get(r request) ([]byte, error) {
	replies, err := c.ask(r, 0)
	if err != nil {
		return nil, err
	}
	if len(replies) == 0 {
		return nil, newError(r, errNoReply)
	}
	return replies[0].Data, nil
}

// set asks for a change and waits for the kernel's word that it is done.
func (c *Client) set(r request) error {
	_, err := c.ask(r, netlink.Acknowledge)
	return err
}

// dumpAttempts bounds how often an interrupted dump is begun again.
const dumpAttempts = 5

// dump asks for all there is. What was read before an error is returned with
// it. A dump that the kernel marks as interrupted by a change is begun again;
// nldev does not mark its dumps up to Linux 7.2, but may.
func (c *Client) dump(r request) ([]netlink.Message, error) {
	var replies []netlink.Message
	for range dumpAttempts {
		var err error
		replies, err = c.ask(r, netlink.Dump)
		if err != nil {
			return replies, err
		}
		if !interrupted(replies) {
			return replies, nil
		}
	}
	return replies, newError(r, ErrInterrupted)
}

// ask makes a request and says what its error means. To a device that is away
// while it moves between namespaces nldev says EINVAL, as to a question that
// makes no sense; where it is back by the time it is asked for, a question is
// put once more.
func (c *Client) ask(r request, flags netlink.HeaderFlags) ([]netlink.Message, error) {
	replies, err := c.exchange(r, flags)
	if !errors.Is(err, syscall.EINVAL) {
		return replies, err
	}
	why, isThere := c.whyInvalid(r)
	if isThere && !r.changes() {
		replies, err = c.exchange(r, flags)
	}
	return replies, refine(err, syscall.EINVAL, why)
}

func interrupted(replies []netlink.Message) bool {
	for _, m := range replies {
		if m.Header.Flags&netlink.DumpInterrupted != 0 {
			return true
		}
	}
	return false
}

// exchange sends one request and returns the replies that carry data, with
// those that came before an error. It does not use Conn.Execute, which drops
// the latter.
func (c *Client) exchange(r request, flags netlink.HeaderFlags) ([]netlink.Message, error) {
	m, err := r.encode(flags)
	if err != nil {
		return nil, newError(r, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, err = c.conn.Send(m); err != nil {
		return nil, newError(r, err)
	}
	var replies []netlink.Message
	for reply, err := range c.conn.ReceiveIter() {
		if err != nil {
			return replies, newError(r, err)
		}
		if reply.Header.Type > netlink.Overrun { // not an acknowledgement
			replies = append(replies, reply)
		}
	}
	if err := netlink.Validate(m, replies); err != nil {
		return nil, newError(r, err)
	}
	return replies, nil
}

// decodeEach decodes replies that describe one thing each. A reply that cannot
// be decoded does not hide the others.
func decodeEach[T any](r request, replies []netlink.Message, decode func([]byte) (T, error)) ([]T, error) {
	var errs []error
	things := make([]T, 0, len(replies))
	for _, m := range replies {
		thing, err := decode(m.Data)
		if err != nil {
			errs = append(errs, newError(r, err))
			continue
		}
		things = append(things, thing)
	}
	return things, errors.Join(errs...)
}

// attributes calls visit for each attribute of b but padding.
func attributes(b []byte, visit func(*netlink.AttributeDecoder)) error {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return err
	}
	visitAll(ad, visit)
	return ad.Err()
}

// nested calls visit for each attribute within the current one of ad; errors
// are ad's.
func nested(ad *netlink.AttributeDecoder, visit func(*netlink.AttributeDecoder)) {
	ad.Nested(func(nad *netlink.AttributeDecoder) error {
		visitAll(nad, visit)
		return nil
	})
}

func visitAll(ad *netlink.AttributeDecoder, visit func(*netlink.AttributeDecoder)) {
	for ad.Next() {
		if ad.Type() != AttrPad {
			visit(ad)
		}
	}
}

// keep stores the current attribute of ad under its number.
func keep(unknown *map[uint16][]byte, ad *netlink.AttributeDecoder) {
	if *unknown == nil {
		*unknown = make(map[uint16][]byte)
	}
	(*unknown)[ad.Type()] = ad.Bytes()
}
