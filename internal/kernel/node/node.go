// Package node is the kernel of a node as one thing: its files, its network
// namespaces, and what it says by itself. The running kernel is one; a
// simulated kernel is another, and nobody who asks can tell.
//
// It parses nothing and keeps nothing: clients that it opens belong to the
// caller.
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

// Node is the kernel of a node. It is safe for concurrent use.
type Node interface { //nolint:interfacebloat // one method for each way in which the kernel speaks
	// FS reads the node's files. Its sysfs is that of our network namespace.
	FS() sysfs.FS
	// Own is the network namespace that we are in. It need not be closed.
	Own() NetNS
	// Open opens another network namespace by a path that [netns.List] found
	// in the proc of FS. Privileges and errors are those of [netns.Open].
	Open(path string) (NetNS, error)

	// Subscribe, Uevents and Monitor hear of changes in our namespace.
	Subscribe(groups ...rtnl.Group) (*rtnl.Subscription, error)
	Uevents() (*uevent.Listener, error)
	Monitor() (*rdmanl.Monitor, error)
}

// NetNS is an open network namespace of a node. It keeps the namespace alive
// until it is closed, and so does every client that it opened, so both are
// closed within the work they are for. What a kernel or driver lacks is the
// package's ErrNotSupported.
type NetNS interface { //nolint:interfacebloat // one method for each client, and what a namespace has
	ID() netns.ID
	RDMA() (*rdmanl.Client, error)
	Links() (*rtnl.Client, error)
	Ethtool() (*ethtool.Client, error)
	Devlink() (*devlink.Client, error)
	// SysFS is a directory in which the namespace's sysfs is seen, see
	// [netns.NS.SysFS]. It does not keep the namespace alive.
	SysFS() (*os.File, error)
	Close() error
}
