// Package attach gives a pod its interfaces: it plans what is to be done, does
// it in one netlink session, and undoes it.
//
// A [Plan] is plain data: links, addresses, routes, rules, neighbours and
// settings of all interfaces of a pod at once, in the pod's network namespace
// and in the node's, each with what undoes it. Nothing of it depends on the
// API server, so that a Plan that was kept on disk is enough to take all of it
// away again, also by another run of the agent.
package attach

import (
	"net"
	"net/netip"

	"railhead/internal/attach/routing"
)

// Group is the group (IFLA_GROUP) of every link that is made in a pod: a pod
// loses all of them by one request. SharedGroup is that of links on the node
// that several pods stand on: VLANs and bonds below their rails. DeviceGroup is
// that of a device of the node that was moved into a pod, until it is again what
// it was.
const (
	Group       = 0x5248
	SharedGroup = 0x5249
	DeviceGroup = 0x524a
)

// Kind is how an interface comes into its pod.
type Kind string

// Kinds of interfaces.
const (
	// Foreign is an interface that another's plugin makes. It is there already
	// and is routed with the others.
	Foreign    Kind = ""
	Macvlan    Kind = "macvlan"
	IPVLAN     Kind = "ipvlan"
	VLAN       Kind = "vlan"        // made on the parent, with Link.VLANID
	HostDevice Kind = "host-device" // a netdev of the node, moved
)

// Pod is one pod's interfaces as they are to be.
type Pod struct {
	ContainerID string // of its sandbox
	NetNS       string // path of its network namespace, as this process sees it
	// Interfaces are all that the pod has, those of others too, in the order in
	// which networks are attached.
	Interfaces []Interface
	// Parents are netdevs of the node that others' plugins make interfaces on later.
	// They are made, shared and removed as those of Interfaces are.
	Parents []Parent
	// Peer is the node's end of the default network's interface where another's
	// plugin made it. With the zero value it is looked for; it may be none.
	Peer routing.Peer
	// NodeAddresses are the node's own; the first of each family is the one that
	// pods send to. With nil they are those of [Attacher.NodeAddresses].
	NodeAddresses []netip.Addr
}

// Interface is one interface of a pod. Of a Foreign one, Addresses are those that its
// plugin answered with. The kernel is asked which it has: the pod is routed by these,
// and the node led to those of them that were answered. Gateways and Routes are asked
// of the kernel where they are not given.
type Interface struct {
	routing.Interface
	Link   Link
	Tuning Tuning
}

// Link is how an interface is made. MAC and name are the Interface's.
type Link struct {
	Kind   Kind
	Parent Parent
	Mode   string // macvlan: bridge, private, vepa, passthru; ipvlan: l2, l3, l3s; "": the kind's first
	MTU    int    // bytes; 0: the parent's
	VLANID int    // of kind VLAN
	// InContainer says that the parent is in the pod's namespace (linkInContainer).
	InContainer bool
	Device      Device // of kind HostDevice
}

// Parent is the netdev that an interface stands on. Where Bond or VLANID say
// so, it is made on the node as it is needed, for all pods that name it, and
// removed with the last of them.
type Parent struct {
	Name    string   // of the netdev below the interface
	Members []string // of Bond, or the one that VLANID stands on; empty: Name is there already
	Bond    *Bond    // nil: none
	VLANID  int      // 0: none
}

// Bond is a bond as it is to be made.
type Bond struct {
	Name    string
	Mode    string            // 802.3ad, …, or its number
	Options map[string]string // by the kernel's names
}

// Device names a netdev of the node, by exactly one of its fields.
type Device struct {
	Name       string
	MAC        net.HardwareAddr
	KernelPath string // below /sys/devices, with or without that
	PCIAddress string // 0000:3b:00.2
}

// Tuning is what the plugin tuning sets. The zero value sets nothing.
type Tuning struct {
	Sysctls    map[string]string // by dotted or slashed name; IFNAME stands for the interface
	MAC        net.HardwareAddr
	MTU        int
	TxQueueLen int
	Promisc    *bool
	AllMulti   *bool
}
