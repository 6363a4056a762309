package fakekernel

import (
	"errors"
	"fmt"

	"github.com/mdlayher/genetlink"

	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/uevent"
)

// Links returns a client of the Kernel.
func (k *Kernel) Links() *rtnl.Client { return rtnl.New(k.dial(route).conn()) }

// RDMA returns a client of the Kernel.
func (k *Kernel) RDMA() *rdmanl.Client { return rdmanl.New(k.dial(rdma).conn()) }

// Ethtool returns a client of the Kernel.
func (k *Kernel) Ethtool() (*ethtool.Client, error) {
	s := k.dial(generic)
	conn := genetlink.NewConn(s.conn())
	c, err := ethtool.New(conn, s.ioctl)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// Devlink returns a client of the Kernel. The error is devlink.ErrNotSupported
// where Facts.Devlink is nil.
func (k *Kernel) Devlink() (*devlink.Client, error) {
	conn := genetlink.NewConn(k.dial(generic).conn())
	c, err := devlink.New(conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// Subscribe returns a subscription to what SendRoute sends of some groups.
func (k *Kernel) Subscribe(groups ...rtnl.Group) *rtnl.Subscription {
	return rtnl.NewSubscription(k.listen(routeEvents, groups...).conn())
}

// Monitor returns a monitor of what SendRDMA sends. The error is
// rdmanl.ErrNotSupported where Facts.System says so.
func (k *Kernel) Monitor() (*rdmanl.Monitor, error) {
	k.mu.Lock()
	system := k.facts.System
	k.mu.Unlock()
	if system == nil || system.MonitorSupport == nil || !*system.MonitorSupport {
		return nil, fmt.Errorf("rdma netlink MONITOR: %w", rdmanl.ErrNotSupported)
	}
	return rdmanl.NewMonitor(k.listen(rdmaEvents).conn()), nil
}

// Uevents returns a listener to what SendUevent sends.
func (k *Kernel) Uevents() *uevent.Listener { return uevent.New(k.listen(uevents)) }
