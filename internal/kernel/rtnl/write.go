package rtnl

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrUnanswered is the error of a request whose acknowledgement was lost:
// whether it was done is not known, and only the lists tell.
var ErrUnanswered = errors.New("the kernel's answer was lost: look whether it was done")

// How much goes to the kernel in one system call. Its answers wait in the
// socket's receive buffer until all requests of the call are done; a refusal
// repeats its request. At the least that Linux gives a socket by default, 208
// KiB, there is room for twice these.
const (
	batchRequests = 64
	batchBytes    = 32 << 10
)

// Request is something that [Client.Do] asks the kernel to change: a
// [LinkAdd], [LinkSet], [LinkDelete], [LinkDeleteGroup], [AddressAdd],
// [AddressDelete], [RouteAdd], [RouteDelete], [RuleAdd], [RuleDelete],
// [NeighbourSet] or [NeighbourDelete].
type Request interface {
	// encode appends the body of the request. What cannot be said it leaves as
	// the encoder's error.
	encode(e *encoder) (netlink.HeaderType, netlink.HeaderFlags)

	// describe says what is to be done, for errors: "add macvlan net1 on link 5".
	describe() string
}

// Do has the kernel make changes, in order, in as few system calls as
// possible, and waits until all have been made or refused. It returns nil where
// all were made. Otherwise errs[i] is the error of requests[i], nil if that was
// made: one that fails stops none of those after it.
//
// A refusal is an [*Error], which names the request and knows fs.ErrExist,
// fs.ErrNotExist, fs.ErrPermission and [ErrNotSupported]. A request with a
// field that cannot be is not sent and has another error. After
// [ErrUnanswered], which needs a machine without memory or a driver that a signal
// interrupts, it is not known whether a request was done; in all other cases it
// is.
//
// It needs CAP_NET_ADMIN in the client's namespace, and in each other one that
// a request names. Requests of one call are not mixed with those of others.
func (c *Client) Do(requests ...Request) (errs []error) {
	changes := make([]change, len(requests))
	toSend := make([]*change, 0, len(requests))
	for i, r := range requests {
		changes[i].prepare(r)
		if changes[i].err == nil {
			toSend = append(toSend, &changes[i])
		}
	}
	c.do(toSend)
	failed := false
	errs = make([]error, len(requests))
	for i := range changes {
		errs[i] = changes[i].err
		failed = failed || errs[i] != nil
	}
	if !failed {
		return nil
	}
	return errs
}

// change is a request on its way.
type change struct {
	request  Request
	message  netlink.Message
	answered bool
	err      error
}

func (c *change) prepare(r Request) {
	var e encoder
	typ, flags := r.encode(&e)
	if e.err != nil {
		c.err = fmt.Errorf("%s: %w", r.describe(), e.err)
		return
	}
	c.request = r
	c.message = message(typ, flags|netlink.Request|netlink.Acknowledge, e.b)
}

// fail notes what a connection returned.
func (c *change) fail(err error) { c.err = refused(c.request.describe(), c.message.Header.Type, err) }

// do sends changes and waits for the answers.
func (c *Client) do(changes []*change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(changes) > 0 {
		n := c.batch(changes)
		c.exchange(changes[:n])
		changes = changes[n:]
	}
}

// batch returns how many of the changes go into the next system call.
func (c *Client) batch(changes []*change) int {
	if c.socket == nil {
		return 1 // who knows how it answers several
	}
	size := 0
	for i, ch := range changes {
		size += unix.SizeofNlMsghdr + align4(len(ch.message.Data))
		if i == batchRequests || i > 0 && size > batchBytes {
			return i
		}
	}
	return len(changes)
}

// exchange sends changes in one piece, or in several if the socket's send buffer
// has no room for it, and waits for the answers. A kernel that does not take a
// piece has done nothing of it.
func (c *Client) exchange(batch []*change) {
	messages := make([]netlink.Message, len(batch))
	for i, ch := range batch {
		messages[i] = ch.message
	}
	sent, err := c.conn.SendMessages(messages)
	switch {
	case errors.Is(err, unix.EMSGSIZE) && len(batch) > 1:
		half := len(batch) / 2
		c.exchange(batch[:half])
		c.exchange(batch[half:])
	case err != nil:
		for _, ch := range batch {
			ch.fail(err)
		}
	default:
		c.collect(batch, sent[0].Header.Sequence)
	}
}

// collect receives the answers to changes that were sent with sequence numbers
// from first on. All answers are there when the changes have been sent, so there
// is nothing to wait for: to a change that a signal interrupted the kernel gives
// none.
func (c *Client) collect(batch []*change, first uint32) {
	if c.socket != nil {
		c.socket.noWait = true
		defer func() { c.socket.noWait = false }()
	}
	var overrun error
	for answers := 0; answers < len(batch); {
		sequence, denied, err := c.answer()
		if overrun == nil && errors.Is(err, unix.ENOBUFS) {
			overrun = err // some were dropped; those that were not follow
			continue
		}
		i := sequence - first
		if err == nil && (i >= uint32(len(batch)) || batch[i].answered) {
			err = fmt.Errorf("answer to message %d, want one to %d to %d", sequence, first, first+uint32(len(batch))-1)
		}
		if err != nil {
			drain(c.conn)
			unanswered(batch, cmp.Or(overrun, err))
			return
		}
		answers++
		batch[i].answered = true
		if denied != nil {
			batch[i].fail(denied)
		}
	}
}

// unanswered notes that the answers that have not come never will.
func unanswered(batch []*change, err error) {
	for _, ch := range batch {
		if !ch.answered {
			ch.fail(fmt.Errorf("%w: %w", ErrUnanswered, err))
		}
	}
}

// answer receives an acknowledgement or a refusal. The kernel sends each in a
// packet of its own.
func (c *Client) answer() (sequence uint32, denied, err error) {
	msgs, err := c.conn.Receive()
	var op *netlink.OpError
	switch {
	case isRefusal(err) && errors.As(err, &op):
		return op.Sequence, err, nil
	case err != nil:
		return 0, nil, err
	case len(msgs) != 1 || msgs[0].Header.Type != netlink.Error:
		return 0, nil, fmt.Errorf("%d messages, want one acknowledgement", len(msgs))
	}
	return msgs[0].Header.Sequence, nil, nil
}
