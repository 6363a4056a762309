package rtnl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

// errTruncated says that a message was longer than the socket's buffer.
var errTruncated = errors.New("message longer than the buffer")

const (
	// messageBuffer is how much one read takes. The kernel puts as much of a
	// dump into one piece as the reader takes, up to 32 KiB; only the answer
	// about a PF's VFs is longer, and see VFs for what happens beyond 64 KiB.
	messageBuffer = 72 << 10

	// eventBuffer is how much a Subscription asks the kernel to queue. It is
	// reached only by root; for others the limit is net.core.rmem_max.
	eventBuffer = 4 << 20
)

// routeSocket is a NETLINK_ROUTE socket for a netlink.Conn. The one of package
// netlink hides the message that ends a dump, whose flags are the only place
// where the kernel says that the dump was interrupted when nothing was left
// to send; it also reads in smaller pieces.
type routeSocket struct {
	conn *socket.Conn
	raw  syscall.RawConn // of conn

	most   int  // bytes that are read at once
	noWait bool // where nothing has come yet, receiving fails
}

// buffers are what datagrams are read into.
//
//nolint:gochecknoglobals // sockets come and go with pods, and have only this in common
var buffers = sync.Pool{New: func() any { return new([messageBuffer]byte) }}

// dial opens a connection that is a member of the multicast groups in the
// bitmap groups.
func dial(config *Config, groups uint32) (*netlink.Conn, error) {
	s, port, err := openSocket(config, groups)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	return netlink.NewConn(s, port), nil
}

// openSocket opens a socket and returns it with the port that it has.
func openSocket(config *Config, groups uint32) (*routeSocket, uint32, error) {
	if config == nil {
		config = &Config{}
	}
	conn, err := socket.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, "rtnetlink",
		&socket.Config{NetNS: config.NetNS})
	if err != nil {
		return nil, 0, err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	s := &routeSocket{conn: conn, raw: raw, most: messageBuffer}
	port, err := s.setup(groups)
	if err != nil {
		return nil, 0, errors.Join(err, conn.Close())
	}
	return s, port, nil
}

// setup binds the socket and returns the port that the kernel gave it.
func (s *routeSocket) setup(groups uint32) (uint32, error) {
	for _, option := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_GET_STRICT_CHK} {
		// Kernels before 4.12 and 4.20 do not have them and need no asking.
		err := s.conn.SetsockoptInt(unix.SOL_NETLINK, option, 1)
		if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
			return 0, err
		}
	}
	if groups != 0 {
		if err := s.conn.SetReadBuffer(eventBuffer); err != nil {
			return 0, err
		}
	}
	if err := s.conn.Bind(&unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return 0, err
	}
	addr, err := s.conn.Getsockname()
	if err != nil {
		return 0, err
	}
	nl, ok := addr.(*unix.SockaddrNetlink)
	if !ok {
		return 0, fmt.Errorf("socket address is a %T, want netlink", addr)
	}
	return nl.Pid, nil
}

// Close closes the socket and ends a blocked receive.
func (s *routeSocket) Close() error { return s.conn.Close() }

// SyscallConn gives access to the socket.
func (s *routeSocket) SyscallConn() (syscall.RawConn, error) { return s.raw, nil }

// Send sends one message to the kernel.
func (s *routeSocket) Send(m netlink.Message) error { return s.SendMessages([]netlink.Message{m}) }

// SendMessages sends messages to the kernel in one piece.
func (s *routeSocket) SendMessages(msgs []netlink.Message) error {
	var buf []byte
	for _, m := range msgs {
		b, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		buf = append(buf, b...)
	}
	_, err := s.conn.Sendmsg(context.Background(), buf, nil, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}, 0)
	return closed(err)
}

// Receive returns the messages of one datagram.
func (s *routeSocket) Receive() ([]netlink.Message, error) {
	var msgs []netlink.Message
	for m, err := range s.ReceiveIter() {
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// ReceiveIter reads one datagram and yields its messages. In place of the end
// of an interrupted dump it yields ErrInterrupted.
func (s *routeSocket) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		datagram, err := s.receive()
		if err != nil {
			yield(netlink.Message{}, err)
			return
		}
		splitMessages(datagram)(yield)
	}
}

// receive waits for a datagram, unless it must not, and reads it. The method of package socket starts a
// goroutine for each, to wait for a context, and every change has an answer.
func (s *routeSocket) receive() ([]byte, error) {
	buf, _ := buffers.Get().(*[messageBuffer]byte)
	defer buffers.Put(buf)
	var n, flags int
	var err error
	closing := s.raw.Read(func(fd uintptr) bool {
		for {
			n, _, flags, _, err = unix.Recvmsg(int(fd), buf[:s.most], nil, 0)
			if !errors.Is(err, unix.EINTR) {
				return s.noWait || !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	switch {
	case closing != nil:
		return nil, fs.ErrClosed
	case err != nil:
		return nil, os.NewSyscallError("recvmsg", err)
	case flags&unix.MSG_TRUNC != 0:
		return nil, errTruncated
	}
	return slices.Clone(buf[:align4(n)]), nil
}

// closed makes the error of a socket that has been closed what Go calls it.
func closed(err error) error {
	if errors.Is(err, unix.EBADF) {
		return fs.ErrClosed
	}
	return err
}

// splitMessages yields the messages of a datagram, which share its memory.
func splitMessages(b []byte) iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		for len(b) > 0 {
			m, n, err := cutMessage(b)
			if !yield(m, err) || err != nil {
				return
			}
			b = b[n:]
		}
	}
}

// cutMessage returns the first message in b and the bytes it takes.
func cutMessage(b []byte) (m netlink.Message, n int, err error) {
	if len(b) < unix.SizeofNlMsghdr {
		return m, 0, fmt.Errorf("netlink message: %d bytes, want a header of %d", len(b), unix.SizeofNlMsghdr)
	}
	length := binary.NativeEndian.Uint32(b)
	if length < unix.SizeofNlMsghdr || uint64(length) > uint64(len(b)) {
		return m, 0, fmt.Errorf("netlink message: length %d of %d bytes", length, len(b))
	}
	n = min(align4(int(length)), len(b))
	m = netlink.Message{
		Header: netlink.Header{
			Length:   length,
			Type:     netlink.HeaderType(binary.NativeEndian.Uint16(b[4:])),
			Flags:    netlink.HeaderFlags(binary.NativeEndian.Uint16(b[6:])),
			Sequence: binary.NativeEndian.Uint32(b[8:]),
			PID:      binary.NativeEndian.Uint32(b[12:]),
		},
		Data: b[unix.SizeofNlMsghdr:length:length],
	}
	if m.Header.Type == netlink.Done && m.Header.Flags&netlink.DumpInterrupted != 0 {
		return netlink.Message{}, n, ErrInterrupted
	}
	return m, n, nil
}
