package driver

import (
	"errors"
	"fmt"
	"net/netip"

	"railhead/internal/kernel/netns"
)

// Forward makes an address that a machine reaches a port of 127.0.0.1, for as
// long as the cluster lives, and returns that.
func (c *Cluster) Forward(machine, target string) (string, error) {
	if _, err := c.machine(machine); err != nil {
		return "", err
	}
	if _, err := netip.ParseAddrPort(target); err != nil {
		return "", fmt.Errorf("forward to %q: want ADDRESS:PORT, as in 10.99.0.11:5711: %w", target, err)
	}
	f, err := newForwarder(machine, func() (*netns.NS, error) { return c.NetNS(machine) }, target)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return "", errors.Join(errClosed, f.Close())
	}
	c.forwarders = append(c.forwarders, f)
	return f.Addr(), nil
}

// disconnect ends the connections that were forwarded to a machine.
func (c *Cluster) disconnect(machine string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.forwarders {
		if f.machine == machine {
			f.drop()
		}
	}
}
