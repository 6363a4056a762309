// Package uevent hears what the kernel announces about devices: that a network
// device, an RDMA device or a PCI function comes, goes, changes or gets a
// driver. It answers "something happened to this device" and never what the
// device is: read that from sysfs or netlink.
//
// Which events a network namespace gets is for the kernel to say
// (lib/kobject_uevent.c). A device of a class that belongs to network
// namespaces, "net" and "infiniband" are the ones that matter here, is announced
// in the namespace of that device and in no other; one that moves is a "remove"
// in its old namespace and an "add" in the new. All other devices ("pci",
// "module", "infiniband_verbs", …) are announced in each network namespace that
// the initial user namespace owns, which are those of the host and of
// containers without a user namespace of their own.
//
// No privilege is needed to listen in one's own network namespace.
package uevent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

// ErrOverrun is the error of a Listener that was too slow: the kernel had no
// room for events and dropped some. The state must be read anew. The Listener
// goes on with the events that come next; those that still waited are dropped
// too, so that none of them is older than a state which is read after the error.
var ErrOverrun = errors.New("uevent: events were lost")

const (
	// groupKernel is the multicast group of the kernel. Group 2 is udevd's.
	groupKernel = 1

	// receiveBuffer bounds the events that wait to be received. An event is
	// charged 2 to 4 kB, and a NIC that gets its VFs announces each of their
	// queues: some ten thousand events in a burst. Only what waits is used.
	receiveBuffer = 128 << 20

	// maxMessage is more than the kernel sends: 2048 bytes of variables and a
	// path of at most 4096.
	maxMessage = 8192
)

// Config says where a [Listener] listens. The zero value is the network
// namespace of the calling thread.
type Config struct {
	// NetNS is an open file descriptor of a network namespace, which needs
	// CAP_SYS_ADMIN to enter. It can be closed once Listen has returned. 0 is
	// the namespace of the calling thread.
	NetNS int
}

// A Listener receives the events of one network namespace. Close may be called
// at any time; Receive must not be called concurrently. An open Listener keeps
// its network namespace alive.
type Listener struct {
	conn   *socket.Conn
	raw    syscall.RawConn
	closed atomic.Bool
	buf    [maxMessage]byte
}

// Listen opens a Listener, which has the events from then on. A nil config is
// the zero Config.
func Listen(config *Config) (*Listener, error) {
	if config == nil {
		config = &Config{}
	}
	conn, err := socket.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT, "uevent",
		&socket.Config{NetNS: config.NetNS})
	if err != nil {
		return nil, fmt.Errorf("uevent socket: %w", err)
	}
	l, err := newListener(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return l, nil
}

func newListener(conn *socket.Conn) (*Listener, error) {
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
	return &Listener{conn: conn, raw: raw}, nil
}

// Receive waits for the next event. The error is [ErrOverrun] where events
// were lost before it, and fs.ErrClosed once the Listener is closed, also for a
// Receive that is waiting by then. After any other error, such as that of a
// message which cannot be parsed, Receive can be called again. Messages that
// the kernel did not send are ignored.
func (l *Listener) Receive() (Event, error) {
	for {
		msg, from, err := l.receive()
		switch {
		case l.closed.Load():
			return Event{}, fmt.Errorf("uevent: %w", fs.ErrClosed)
		case errors.Is(err, unix.ENOBUFS):
			l.drain()
			return Event{}, ErrOverrun
		case err != nil:
			return Event{}, fmt.Errorf("uevent: %w", err)
		case fromKernel(from):
			return Parse(msg)
		}
	}
}

// Close stops the Listener and wakes up a Receive that waits.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.conn.Close()
}

// receive returns one message, which is good until the next, and its sender.
func (l *Listener) receive() (msg []byte, from unix.Sockaddr, err error) {
	var n, flags int
	wait := l.raw.Read(func(fd uintptr) (done bool) {
		n, _, flags, from, err = unix.Recvmsg(int(fd), l.buf[:], nil, 0)
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case wait != nil:
		return nil, nil, wait
	case err != nil:
		return nil, nil, os.NewSyscallError("recvmsg", err)
	case flags&unix.MSG_TRUNC != 0:
		return nil, nil, fmt.Errorf("message of more than %d bytes", len(l.buf))
	}
	return l.buf[:n], from, nil
}

// drain drops what waits. The kernel says ENOBUFS once and then goes on
// dropping events, in silence, until the queue has been empty (netlink_overrun
// and netlink_rcv_wake in net/netlink/af_netlink.c): without drain, events that
// come after ErrOverrun would be lost with no error.
func (l *Listener) drain() {
	_ = l.raw.Control(func(fd uintptr) { // fails when closed, which the next Receive says
		for {
			_, _, _, _, err := unix.Recvmsg(int(fd), l.buf[:], nil, unix.MSG_DONTWAIT)
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
