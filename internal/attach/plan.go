package attach

import (
	"net/netip"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// Version is that of the form of a Plan on disk. A Plan of a later one is not
// undone by this release.
const Version = 1

// Plan is all that is to be done for a pod, with what undoes it. It is plain
// data, goes to JSON and back without loss, and is kept on disk as the pod's
// record, from which also a later release takes the pod's interfaces away.
type Plan struct {
	Version     int      `json:"version"`
	ContainerID string   `json:"containerID"`
	NetNS       string   `json:"netNS"` // path
	ID          netns.ID `json:"id"`    // of the namespace that was at the path
	// Cookie is that namespace's too (SO_NETNS_COOKIE), which none has again until
	// the node is started anew; 0 where the kernel, before Linux 5.14, has none.
	Cookie uint64 `json:"cookie,omitempty"`
	// Shared are links on the node, in the order in which they are made.
	Shared []SharedLink `json:"shared,omitempty"`
	// Interfaces are the pod's, in the order in which networks are attached.
	Interfaces []PlannedInterface `json:"interfaces"`
	// Defaults are settings of the pod's namespace that its links begin with, and
	// that end with their making; Sysctls are written after it, Routing's among them.
	Defaults []routing.Sysctl `json:"defaults,omitempty"`
	Sysctls  []routing.Sysctl `json:"sysctls,omitempty"`
	Routing  routing.Result   `json:"routing"`
	Before   Before           `json:"before"`
	Notes    []string         `json:"notes,omitempty"` // for people: what is not as one might expect
}

// PlannedInterface is one interface of a Plan.
type PlannedInterface struct {
	Name        string `json:"name"`
	Kind        Kind   `json:"kind,omitempty"`
	Mode        string `json:"mode,omitempty"`
	VLANID      int    `json:"vlanID,omitempty"`
	Parent      string `json:"parent,omitempty"`      // netdev below it, or that is moved
	ParentIndex int    `json:"parentIndex,omitempty"` // 0: known only when the parent is made
	InContainer bool   `json:"inContainer,omitempty"` // the parent is in the pod
	Index       int    `json:"index,omitempty"`       // in the pod; 0 for a device that is moved
	MAC         string `json:"mac,omitempty"`         // to set; empty: the kernel's choice
	MTU         int    `json:"mtu,omitempty"`         // bytes; 0: the kernel's choice
	TxQueueLen  int    `json:"txQueueLen,omitempty"`  // packets; 0: the kernel's choice
	Promisc     *bool  `json:"promisc,omitempty"`
	AllMulti    *bool  `json:"allMulti,omitempty"`

	Rail      int            `json:"rail"`
	Table     int            `json:"table,omitempty"` // its own routing table; 0: none
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	Gateways  []netip.Addr   `json:"gateways,omitempty"`

	// Before is how a HostDevice was on the node and a Foreign interface in the
	// pod; nil for those that are made.
	Before *Former `json:"before,omitempty"`
}

// SharedLink is a VLAN or a bond on the node, below the interfaces of several pods.
type SharedLink struct {
	Name    string            `json:"name"`
	Kind    string            `json:"kind"`             // "vlan" or "bond"
	On      string            `json:"on,omitempty"`     // what a VLAN is made on
	VLANID  int               `json:"vlanID,omitempty"` // of a VLAN
	Members []Former          `json:"members,omitempty"`
	Mode    string            `json:"mode,omitempty"` // of a bond, by name
	Options map[string]string `json:"options,omitempty"`
}

// Before is how things were that are changed and stay when the pod goes.
type Before struct {
	Sysctls []routing.Sysctl `json:"sysctls,omitempty"`
	Routes  []rtnl.Route     `json:"routes,omitempty"` // of others in the pod, that are taken away
	// Rest is what takes the places of some of Routes: the ways of theirs that stay.
	Rest []rtnl.Route `json:"rest,omitempty"`
	// PeerIndex is of the node's end of an interface that another's plugin made:
	// a later pod's may have its name.
	PeerIndex int `json:"peerIndex,omitempty"`
}

// Former is a link as it was, to be found and made so again.
type Former struct {
	Name        string         `json:"name"`
	Index       int            `json:"index"`
	MAC         string         `json:"mac,omitempty"`
	PermMAC     string         `json:"permMAC,omitempty"`
	Bus         string         `json:"bus,omitempty"`
	Device      string         `json:"device,omitempty"` // on the Bus: 0000:3b:00.2
	Port        string         `json:"port,omitempty"`   // p0
	MTU         int            `json:"mtu"`
	TxQueueLen  int            `json:"txQueueLen"`
	Group       int            `json:"group,omitempty"`
	Up          bool           `json:"up"`
	Promisc     bool           `json:"promisc,omitempty"`
	AllMulti    bool           `json:"allMulti,omitempty"`
	MasterIndex int            `json:"masterIndex,omitempty"`
	Addresses   []rtnl.Address `json:"addresses,omitempty"`
	Routes      []rtnl.Route   `json:"routes,omitempty"`
}

// formerOf is a link as it is.
func formerOf(l rtnl.Link) Former {
	return Former{
		Name: l.Name, Index: l.Index, MAC: l.Address, PermMAC: l.PermAddress, Bus: l.ParentBus, Device: l.ParentDev, Port: l.PhysPortName,
		MTU: l.MTU, TxQueueLen: l.TxQueueLen, Group: l.Group, Up: l.Up, MasterIndex: l.MasterIndex,
	}
}

// made says whether an interface is made by us, and goes with the pod.
func (i PlannedInterface) made() bool { return i.Kind != Foreign && i.Kind != HostDevice }

// makes says whether a link of a name is made in the pod.
func (p *Plan) makes(name string) bool {
	for _, i := range p.Interfaces {
		if i.Name == name {
			return i.made()
		}
	}
	return p.Routing.Veth != nil && p.Routing.Veth.PodName == name
}

// isMade says whether a link of the pod is one that is made there. A pod may change
// names and groups of links, but no number as long as it has them.
func (p *Plan) isMade(l rtnl.Link) bool {
	for _, i := range p.Interfaces {
		if i.made() && i.Index == l.Index {
			return l.Kind == string(i.Kind)
		}
	}
	return p.Routing.Veth != nil && l.Index == p.vethIndex() && l.Kind == kindVeth
}

// brings says whether a link of a name is made in the pod or moved there.
func (p *Plan) brings(name string) bool {
	for _, i := range p.Interfaces {
		if i.Name == name {
			return i.Kind != Foreign
		}
	}
	return p.makes(name)
}

// devices are the interfaces that are moved to the pod.
func (p *Plan) devices() []*PlannedInterface {
	var all []*PlannedInterface
	for n := range p.Interfaces {
		if i := &p.Interfaces[n]; i.Kind == HostDevice {
			all = append(all, i)
		}
	}
	return all
}

// shared is the shared link of a name, nil if there is none.
func (p *Plan) shared(name string) *SharedLink {
	for n := range p.Shared {
		if p.Shared[n].Name == name {
			return &p.Shared[n]
		}
	}
	return nil
}
