// Package ethtool asks the kernel what a network device's link runs at (speed,
// pause, FEC) and what its driver counts: the standard statistics, and the
// driver's own (ethtool -S).
//
// Link questions go over the ethtool family of generic netlink (Linux 5.6 or
// newer, Documentation/networking/ethtool-netlink.rst). Driver statistics and
// driver information have no netlink form and go over the SIOCETHTOOL ioctl
// (include/uapi/linux/ethtool.h). The package only reads: it never changes a
// setting, and it needs no privilege but for entering another network
// namespace.
package ethtool

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Config says where a [Client] looks. The zero value is the network namespace
// of the calling thread.
type Config struct {
	// NetNS is an open file descriptor of a network namespace, which needs
	// CAP_SYS_ADMIN to enter. It can be closed once Dial has returned. 0 is
	// the namespace of the calling thread.
	NetNS int
}

// A Client asks about the network devices of one network namespace. It is safe
// for concurrent use; calls of the same kind wait for each other. An open
// Client keeps its network namespace alive.
type Client struct {
	nl     *genetlink.Conn
	family uint16
	closed atomic.Bool

	mu      sync.Mutex // held for each ioctl, and for as long as its answer is in arena
	ioctl   func(netdev string, data []byte) error
	arena   []byte // where an ioctl answers; gone when closed
	mapping []byte
}

// Dial opens a Client. A nil config is the zero Config. The error is
// [ErrNotSupported] where the kernel has no ethtool netlink family.
func Dial(config *Config) (*Client, error) {
	if config == nil {
		config = &Config{}
	}
	nl, err := genetlink.Dial(&netlink.Config{NetNS: config.NetNS})
	if err != nil {
		return nil, fmt.Errorf("ethtool socket: %w", err)
	}
	c, err := newClient(nl)
	if err != nil {
		return nil, errors.Join(err, nl.Close())
	}
	return c, nil
}

// newClient prepares both wires over one socket. The ioctl needs none of its
// own: the kernel takes SIOCETHTOOL on a socket of any protocol and resolves
// the device in that socket's namespace, so one socket is opened in the right
// namespace and the two wires cannot disagree.
func newClient(nl *genetlink.Conn) (*Client, error) {
	if err := nl.SetOption(netlink.ExtendedAcknowledge, true); err != nil {
		return nil, fmt.Errorf("ethtool socket: extended errors: %w", err)
	}
	raw, err := nl.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("ethtool socket: %w", err)
	}
	return New(nl, newIoctlSocket(raw).call)
}

// New returns a Client on a connection to generic netlink, or to something
// that answers like it. Such a thing answers SIOCETHTOOL by ioctl: data begins
// with an ETHTOOL_… command, and the answer is written over it; calls come one
// at a time. Without ioctl, which may be nil, driver information and statistics
// are [ErrNotSupported]. The Client owns the connection, unless there is an
// error. That is [ErrNotSupported] where there is no ethtool netlink family.
func New(nl *genetlink.Conn, ioctl func(netdev string, data []byte) error) (*Client, error) {
	family, err := nl.GetFamily(unix.ETHTOOL_GENL_NAME)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("netlink family %q, which Linux 5.6 brought: %w", unix.ETHTOOL_GENL_NAME, ErrNotSupported)
	}
	if err != nil {
		return nil, fmt.Errorf("netlink family %q: %w", unix.ETHTOOL_GENL_NAME, err)
	}
	c := &Client{nl: nl, family: family.ID, ioctl: ioctl}
	if ioctl == nil {
		return c, nil
	}
	if c.mapping, c.arena, err = mapArena(); err != nil {
		return nil, err
	}
	return c, nil
}

// Close releases the Client and its hold on the namespace. It waits for an
// ioctl that is under way; later calls fail with fs.ErrClosed.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.nl.Close(), unmapArena(c.mapping))
}
