// Package devlink asks the kernel how healthy devices are: which health
// reporters their drivers have, what these count, and what a reporter says of
// its device when it is asked to diagnose it.
//
// Questions go over the devlink family of generic netlink
// (include/uapi/linux/devlink.h, Documentation/networking/devlink). The package
// only asks: it starts no recovery, takes no dump and changes no setting.
package devlink

import (
	"errors"
	"fmt"
	"io/fs"
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

// A Client asks about the devices of one network namespace. It is safe for
// concurrent use. An open Client keeps its network namespace alive.
type Client struct {
	nl     *genetlink.Conn
	family uint16
	closed atomic.Bool
}

// Dial opens a Client. A nil config is the zero Config. The error is
// [ErrNotSupported] where the kernel has no devlink.
func Dial(config *Config) (*Client, error) {
	if config == nil {
		config = &Config{}
	}
	nl, err := genetlink.Dial(&netlink.Config{NetNS: config.NetNS})
	if err != nil {
		return nil, fmt.Errorf("devlink socket: %w", err)
	}
	c, err := newClient(nl)
	if err != nil {
		return nil, errors.Join(err, nl.Close())
	}
	return c, nil
}

func newClient(nl *genetlink.Conn) (*Client, error) {
	if err := nl.SetOption(netlink.ExtendedAcknowledge, true); err != nil {
		return nil, fmt.Errorf("devlink socket: extended errors: %w", err)
	}
	return New(nl)
}

// New returns a Client on a connection to generic netlink, or to something
// that answers like it. The Client owns the connection, unless there is an
// error. That is [ErrNotSupported] where there is no devlink family.
func New(nl *genetlink.Conn) (*Client, error) {
	family, err := nl.GetFamily(unix.DEVLINK_GENL_NAME)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("netlink family %q, which takes CONFIG_NET_DEVLINK: %w", unix.DEVLINK_GENL_NAME, ErrNotSupported)
	}
	if err != nil {
		return nil, fmt.Errorf("netlink family %q: %w", unix.DEVLINK_GENL_NAME, err)
	}
	return &Client{nl: nl, family: family.ID}, nil
}

// Close releases the Client and its hold on the namespace. Later calls fail
// with fs.ErrClosed.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.nl.Close()
}
