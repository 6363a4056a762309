package uevent

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

const (
	// groupKernel is the multicast group of the kernel. Group 2 is udevd's.
	groupKernel = 1

	// receiveBuffer bounds the events that wait to be received. An event is
	// charged 2 to 4 kB, and a NIC that gets its VFs announces each of their
	// queues: some ten thousand events in a burst. Only what waits is used.
	receiveBuffer = 128 << 20
)

// kernelSocket is where the running kernel sends its events.
type kernelSocket struct {
	conn *socket.Conn
	raw  syscall.RawConn
}

func newKernelSocket(conn *socket.Conn) (*kernelSocket, error) {
	// With CAP_NET_ADMIN, as much as is asked for; without, the most that
	// net.core.rmem_max allows, and no error.
	if err := conn.SetReadBuffer(receiveBuffer); err != nil {
		return nil, fmt.Errorf("uevent socket: receive buffer of %d bytes: %w", receiveBuffer, err)
	}
	if err := conn.Bind(&unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groupKernel}); err != nil {
		return nil, fmt.Errorf("uevent socket: group %d: %w", groupKernel, err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("uevent socket: %w", err)
	}
	return &kernelSocket{conn: conn, raw: raw}, nil
}

// Read waits for the next message of the kernel. The error is ErrOverrun where
// some were lost.
func (s *kernelSocket) Read(buf []byte) (int, error) {
	for {
		n, from, err := s.receive(buf)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			s.drain(buf)
			return 0, ErrOverrun
		case err != nil:
			return 0, err
		case fromKernel(from):
			return n, nil
		}
	}
}

// Close closes the socket and ends a Read that waits.
func (s *kernelSocket) Close() error { return s.conn.Close() }

// receive returns the length of one message, and its sender.
func (s *kernelSocket) receive(buf []byte) (n int, from unix.Sockaddr, err error) {
	var flags int
	wait := s.raw.Read(func(fd uintptr) (done bool) {
		n, _, flags, from, err = unix.Recvmsg(int(fd), buf, nil, 0)
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case wait != nil:
		return 0, nil, wait
	case err != nil:
		return 0, nil, os.NewSyscallError("recvmsg", err)
	case flags&unix.MSG_TRUNC != 0:
		return 0, nil, fmt.Errorf("message of more than %d bytes", len(buf))
	}
	return n, from, nil
}

// drain drops what waits. The kernel says ENOBUFS once and then goes on
// dropping events, in silence, until the queue has been empty (netlink_overrun
// and netlink_rcv_wake in net/netlink/af_netlink.c): without drain, events that
// come after ErrOverrun would be lost with no error.
func (s *kernelSocket) drain(buf []byte) {
	_ = s.raw.Control(func(fd uintptr) { // fails when closed, which the next Receive says
		for {
			_, _, _, _, err := unix.Recvmsg(int(fd), buf, nil, unix.MSG_DONTWAIT)
			if err != nil && !errors.Is(err, unix.ENOBUFS) {
				return
			}
		}
	})
}

// fromKernel reports whether a message has the kernel's address, port 0, which
// no process can have.
func fromKernel(from unix.Sockaddr) bool {
	sa, ok := from.(*unix.SockaddrNetlink)
	return ok && sa.Pid == 0
}
