package inventory

import (
	"railhead/internal/kernel/ethtool"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/kernel/sysfs"
)

// Facts is all that [Join] knows: what sysfs and netlink said, side by side.
type Facts struct {
	Kernel         string // release
	NetNSModeParam string // "shared" or "exclusive" by the parameter of ib_core, where netlink is silent
	IB             []sysfs.IBDevice
	Chars          []sysfs.CharDevice
	Netdevs        []sysfs.Netdev
	PCI            []sysfs.PCIDevice // network and InfiniBand functions, GPUs and accelerators
	Netlink        Netlink
	Problems       []error // what could not be read

	functions []string // addresses of all PCI functions, so that those of no interest are looked at once
	unread    Changes  // what could not be read, or not whole: it is read again with the next change
	looked    look
}

// Netlink is what the kernel said by netlink. It is stored as netlink.json in
// the archive of a machine, because netlink cannot be read from a file.
type Netlink struct {
	System    *rdmanl.System               `json:"system,omitempty"` // nil where the kernel has no RDMA
	RDMA      []rdmanl.Device              `json:"rdma,omitempty"`   // with their ports
	Links     []rtnl.Link                  `json:"links,omitempty"`
	Addresses []rtnl.Address               `json:"addresses,omitempty"`
	Settings  map[int]ethtool.LinkSettings `json:"settings,omitempty"` // by link index
	Elsewhere []Namespace                  `json:"elsewhere,omitempty"`
}

// Namespace is what another network namespace holds of the node's devices.
type Namespace struct {
	ID        netns.ID         `json:"id"`
	Path      string           `json:"path"`         // a path that opens it
	IB        []sysfs.IBDevice `json:"ib,omitempty"` // through that namespace's own view of sysfs
	RDMA      []rdmanl.Device  `json:"rdma,omitempty"`
	Links     []rtnl.Link      `json:"links,omitempty"` // those with hardware below them
	Addresses []rtnl.Address   `json:"addresses,omitempty"`

	Settings map[int]ethtool.LinkSettings `json:"settings,omitempty"` // by link index
}
