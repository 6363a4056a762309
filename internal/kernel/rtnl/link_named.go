package rtnl

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// namesAtOnce is how many links are asked for in one system call. All answers
// wait in the socket's receive buffer, which has room for several times these.
const namesAtOnce = 16

// LinksByName returns those links that there are of some names, or alternative
// names, by these: what [Client.LinkByName] asks for one, it asks for many at once.
// Errors are of single names, and hide no other.
func (c *Client) LinksByName(names ...string) (map[string]Link, error) {
	found := make(map[string]Link, len(names))
	var errs []error
	for some := range slices.Chunk(names, namesAtOnce) {
		for i, err := range c.linksByName(some, found) {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			if err != nil {
				delete(found, some[i])
			}
		}
	}
	return found, errors.Join(errs...)
}

// linksByName adds the links of a few names to those that were found, and returns
// an error for each.
func (c *Client) linksByName(names []string, found map[string]Link) []error {
	errs := make([]error, len(names))
	var requests []netlink.Message
	var asked []int
	for i, name := range names {
		request, err := nameRequest(name)
		switch {
		case err != nil:
			errs[i] = err
		case c.socket == nil: // somebody else's, and who knows how it answers several
			found[name], errs[i] = c.link(linkTitle(name), request)
		default:
			requests, asked = append(requests, message(unix.RTM_GETLINK, netlink.Request, request)), append(asked, i)
		}
	}
	for n, a := range c.getAll(requests) {
		i := asked[n]
		if a.err != nil {
			errs[i] = refused(linkTitle(names[i]), unix.RTM_GETLINK, a.err)
			continue
		}
		found[names[i]], errs[i] = parseLink(a.message.Data)
	}
	return errs
}

// answered is the answer to one request.
type answered struct {
	message netlink.Message
	err     error
}

// getAll sends requests for one object each in one piece and returns their answers.
// The kernel answers in order, and has answered all once it has taken them. Where one
// is not that to the request in its place, nothing more is to be had.
func (c *Client) getAll(requests []netlink.Message) []answered {
	answers := make([]answered, len(requests))
	if len(requests) == 0 {
		return answers
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, failed := c.conn.SendMessages(requests)
	c.socket.noWait = true
	defer func() { c.socket.noWait = false }()
	for i := range answers {
		if failed != nil { // then nothing more is to be had
			answers[i].err = failed
			continue
		}
		var sequence uint32
		sequence, answers[i] = c.getAnswer()
		switch err := answers[i].err; {
		case err != nil && !isRefusal(err):
			failed = err
		case sequence != sent[i].Header.Sequence:
			failed = fmt.Errorf("answer to message %d, want one to %d", sequence, sent[i].Header.Sequence)
		}
		if failed != nil {
			answers[i] = answered{err: failed}
			drain(c.conn) // lest what is left be taken for answers to the next request
		}
	}
	return answers
}

// getAnswer receives the answer to a request for one object, and says to which.
func (c *Client) getAnswer() (sequence uint32, a answered) {
	msgs, err := c.conn.Receive()
	var op *netlink.OpError
	switch {
	case isRefusal(err) && errors.As(err, &op):
		return op.Sequence, answered{err: err}
	case err != nil:
		return 0, answered{err: err}
	case len(msgs) != 1:
		return 0, answered{err: fmt.Errorf("%d messages in an answer, want 1", len(msgs))}
	}
	return msgs[0].Header.Sequence, answered{message: msgs[0]}
}

// linkTitle is what errors call a link.
func linkTitle(name string) string { return fmt.Sprintf("link %q", name) }

// nameRequest returns the body of an RTM_GETLINK for a name.
func nameRequest(name string) ([]byte, error) {
	var attribute uint16 = unix.IFLA_IFNAME
	switch n := len(name); {
	case n == 0 || n > maxAltName:
		return nil, fmt.Errorf("%s: a name of %d bytes, want 1 to %d", linkTitle(name), n, maxAltName)
	case n > maxName:
		attribute = unix.IFLA_ALT_IFNAME
	}
	return appendAttribute(linkRequest(0, extSkipStats), attribute, append([]byte(name), 0)), nil
}
