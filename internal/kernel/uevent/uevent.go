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
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

// ErrOverrun is the error of a Listener that was too slow: the kernel had no
// room for events and dropped some. The state must be read anew. The Listener
// goes on with the events that come next; those that still waited are dropped
// too, so that none of them is older than a state which is read after the error.
var ErrOverrun = errors.New("uevent: events were lost")

// maxMessage is more than the kernel sends: 2048 bytes of variables and a path
// of at most 4096.
const maxMessage = 8192

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
	messages io.ReadCloser
	closed   atomic.Bool
	buf      [maxMessage]byte
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
	s, err := newKernelSocket(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return New(s), nil
}

// New returns a Listener to something that speaks like the kernel: each Read
// returns one whole message, as "action@devpath" and variables, and waits for it.
// Close ends a Read that waits. The Listener owns messages.
func New(messages io.ReadCloser) *Listener { return &Listener{messages: messages} }

// Receive waits for the next event. The error is [ErrOverrun] where events
// were lost before it, and fs.ErrClosed once the Listener is closed, also for a
// Receive that is waiting by then. After any other error, such as that of a
// message which cannot be parsed, Receive can be called again. Messages that
// the kernel did not send are ignored.
func (l *Listener) Receive() (Event, error) {
	n, err := l.messages.Read(l.buf[:])
	switch {
	case l.closed.Load():
		return Event{}, fmt.Errorf("uevent: %w", fs.ErrClosed)
	case errors.Is(err, ErrOverrun):
		return Event{}, ErrOverrun
	case err != nil:
		return Event{}, fmt.Errorf("uevent: %w", err)
	}
	return parse(l.buf[:n])
}

// Close stops the Listener and wakes up a Receive that waits.
func (l *Listener) Close() error {
	l.closed.Store(true)
	return l.messages.Close()
}
