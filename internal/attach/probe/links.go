package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"railhead/internal/kernel/rtnl"
)

// change is what the kernel says about links.
type change struct {
	events []rtnl.Event
	err    error
}

// links are those of the watched namespace.
type links struct {
	client *rtnl.Client
	events *rtnl.Subscription
	known  map[int]rtnl.Link
}

// open subscribes first, so that no change is missed.
func (l *links) open(netnsFD int) (err error) {
	config := &rtnl.Config{NetNS: netnsFD}
	if l.events, err = rtnl.Subscribe(config, rtnl.Links); err != nil {
		return err
	}
	if l.client, err = rtnl.Dial(config); err != nil {
		return err
	}
	return l.list()
}

func (l *links) close() {
	if l.events != nil {
		_ = l.events.Close()
	}
	if l.client != nil {
		_ = l.client.Close()
	}
}

// list reads all links. One that cannot be decoded does not hide the others.
func (l *links) list() error {
	all, err := l.client.Links()
	if err != nil && len(all) == 0 {
		return err
	}
	l.known = make(map[int]rtnl.Link, len(all))
	for _, link := range all {
		l.known[link.Index] = link
	}
	return nil
}

// read passes on what the kernel says until the subscription is closed.
func (l *links) read(changes chan<- change, ended <-chan struct{}) {
	for {
		events, err := l.events.Receive()
		if errors.Is(err, fs.ErrClosed) {
			return
		}
		select {
		case changes <- change{events, err}:
		case <-ended:
			return
		}
		if isBroken(err) {
			return
		}
	}
}

// isBroken reports whether an error is one of the socket, not of a message.
func isBroken(err error) bool {
	var call *os.SyscallError
	return errors.As(err, &call) && !errors.Is(err, rtnl.ErrOverrun)
}

// take takes in a change, and calls gone for links that are, with 0 where that
// may be any.
func (l *links) take(c change, gone func(index int)) error {
	if errors.Is(c.err, rtnl.ErrOverrun) {
		gone(0)
		return l.list()
	}
	if isBroken(c.err) {
		return c.err
	}
	for _, e := range c.events {
		if e.Link == nil {
			continue
		}
		if e.Deleted {
			delete(l.known, e.Link.Index)
			gone(e.Link.Index)
			continue
		}
		l.known[e.Link.Index] = *e.Link
	}
	return nil
}

// byName returns the index of the link of a name.
func (l *links) byName(name string) (index int, exists bool) {
	for i, link := range l.known {
		if link.Name == name {
			return i, true
		}
	}
	return 0, false
}

// isOurs reports whether a MAC address is one of a link.
func (l *links) isOurs(mac fmt.Stringer) bool {
	text := mac.String()
	for _, link := range l.known {
		if link.Address == text {
			return true
		}
	}
	return false
}
