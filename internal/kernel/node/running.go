package node

import (
	"os"

	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
	"railhead/internal/kernel/uevent"
)

// Running returns the kernel that we run on, whose files are read through fs.
// Sockets of our own namespace are opened in that of the calling thread.
//
// Opening a client of RDMA may make the kernel load ib_core where that is not
// loaded: who does not want that asks fs for the module first.
func Running(fs sysfs.FS) Node { return running{fs: fs} }

type running struct{ fs sysfs.FS }

func (r running) FS() sysfs.FS { return r.fs }

func (r running) Own() NetNS { return own(r) }

func (r running) Open(path string) (NetNS, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	return other{ns}, nil
}

func (running) Subscribe(groups ...rtnl.Group) (*rtnl.Subscription, error) {
	return rtnl.Subscribe(nil, groups...)
}

func (running) Uevents() (*uevent.Listener, error) { return uevent.Listen(nil) }

func (running) Monitor() (*rdmanl.Monitor, error) { return rdmanl.DialMonitor(nil) }

// own is the namespace that we are in.
type own struct{ fs sysfs.FS }

// ID is zero where proc is not mounted.
func (o own) ID() netns.ID {
	id, err := netns.Stat(o.fs.Path("proc/thread-self/ns/net"))
	if err != nil {
		return netns.ID{}
	}
	return id
}

func (own) RDMA() (*rdmanl.Client, error)     { return rdmanl.Dial(nil) }
func (own) Links() (*rtnl.Client, error)      { return rtnl.Dial(nil) }
func (own) Ethtool() (*ethtool.Client, error) { return ethtool.Dial(nil) }
func (own) Devlink() (*devlink.Client, error) { return devlink.Dial(nil) }
func (o own) SysFS() (*os.File, error)        { return os.Open(o.fs.Sys()) }
func (own) Close() error                      { return nil }

// other is a namespace that was opened; its identity, its view of sysfs and its
// end are those of the netns.NS.
type other struct{ *netns.NS }

func (o other) RDMA() (*rdmanl.Client, error) {
	return rdmanl.Dial(&rdmanl.Config{NetNS: o.FD()})
}

func (o other) Links() (*rtnl.Client, error) {
	return rtnl.Dial(&rtnl.Config{NetNS: o.FD()})
}

func (o other) Ethtool() (*ethtool.Client, error) {
	return ethtool.Dial(&ethtool.Config{NetNS: o.FD()})
}

func (o other) Devlink() (*devlink.Client, error) {
	return devlink.Dial(&devlink.Config{NetNS: o.FD()})
}
