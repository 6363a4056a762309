package fakekernel

import (
	"encoding/binary"
	"io/fs"
	"iter"

	"github.com/mdlayher/netlink"
)

// port is the netlink port of every socket.
const port = 1

// socket is a connection to a Kernel that answers at once. As netlink.Conn
// does, it expects an answer to be received before the next request is sent.
type socket struct {
	kernel   *Kernel
	protocol protocol
	waiting  []netlink.Message
	closed   bool
}

func (k *Kernel) dial(p protocol) *netlink.Conn {
	return netlink.NewConn(&socket{kernel: k, protocol: p}, port)
}

// Close closes the socket.
func (s *socket) Close() error {
	s.closed = true
	return nil
}

// Send has a request answered.
func (s *socket) Send(m netlink.Message) error {
	if s.closed {
		return fs.ErrClosed
	}
	s.waiting = append(s.waiting, s.kernel.ask(m, s.protocol)...)
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
	if s.closed {
		return nil, fs.ErrClosed
	}
	messages := s.waiting
	s.waiting = nil
	return messages, nil
}

// ReceiveIter yields all that waits to be received.
func (s *socket) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		messages, err := s.Receive()
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

func putUint32(b []byte, v uint32) { binary.NativeEndian.PutUint32(b, v) }

// encode encodes attributes. They are well-formed, because they come from
// values that were decoded or could have been.
func encode(attributes func(*netlink.AttributeEncoder)) []byte {
	ae := netlink.NewAttributeEncoder()
	attributes(ae)
	b, err := ae.Encode()
	if err != nil {
		panic(err)
	}
	return b
}
