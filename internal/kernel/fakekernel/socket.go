package fakekernel

import (
	"io/fs"
	"iter"
	"slices"
	"sync"

	"github.com/mdlayher/netlink"
)

// port is the netlink port of every socket.
const port = 1

// socket is a connection to a Kernel that answers at once, or when a request's
// time has passed. As netlink.Conn does, it expects an answer to be received
// before the next request is sent.
type socket struct {
	kernel   *Kernel
	protocol protocol
	waiting  []netlink.Message
	closed   chan struct{}
	close    func()
}

func (k *Kernel) dial(p protocol) *socket {
	s := &socket{kernel: k, protocol: p, closed: make(chan struct{})}
	k.sockets.Add(1)
	s.close = sync.OnceFunc(func() {
		close(s.closed)
		k.sockets.Add(-1)
	})
	return s
}

func (s *socket) conn() *netlink.Conn { return netlink.NewConn(s, port) }

// Close closes the socket and ends a Send that waits.
func (s *socket) Close() error {
	s.close()
	return nil
}

// Send has a request answered.
func (s *socket) Send(m netlink.Message) error {
	q := s.protocol(m)
	q.dump = m.Header.Flags&netlink.Dump == netlink.Dump
	if err := s.kernel.arrive(&q, s.closed); err != nil {
		return err
	}
	s.waiting = s.kernel.ask(s.waiting, m, q)
	return nil
}

// SendMessages has requests answered.
func (s *socket) SendMessages(messages []netlink.Message) error {
	for _, m := range messages {
		if err := s.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// Receive returns all that waits to be received.
func (s *socket) Receive() ([]netlink.Message, error) {
	messages, err := s.take()
	return slices.Clone(messages), err
}

// ReceiveIter yields all that waits to be received.
func (s *socket) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		messages, err := s.take()
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

// take returns what waits, which is good until the next Send.
func (s *socket) take() ([]netlink.Message, error) {
	select {
	case <-s.closed:
		return nil, fs.ErrClosed
	default:
	}
	messages := s.waiting
	s.waiting = messages[:0]
	return messages, nil
}
