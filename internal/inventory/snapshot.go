package inventory

import (
	"cmp"
	"net/netip"
	"path"
	"strings"

	"railhead/internal/kernel/netns"
)

// Snapshot is what the node had at one moment. It is immutable: whoever holds
// one may read it from any goroutine and must not change it.
type Snapshot struct {
	System   System   `json:"system"`
	Devices  []Device `json:"devices"`
	GPUs     []GPU    `json:"gpus,omitempty"`
	Problems []string `json:"problems,omitempty"` // what could not be read, one line each; the rest is complete
}

// System is the state of the node's kernel as far as RDMA is concerned.
type System struct {
	Kernel     string `json:"kernel,omitempty"`     // release: 7.2.13-amd64
	NetNSMode  string `json:"netnsMode,omitempty"`  // "shared" or "exclusive"; empty where the kernel has no RDMA
	CopyOnFork *bool  `json:"copyOnFork,omitempty"` // nil where the kernel does not say
}

// Kind says what a device is.
type Kind string

// The kinds of a Device.
const (
	PF      Kind = "PF"      // a physical PCI function
	VF      Kind = "VF"      // a virtual function of a PF
	SF      Kind = "SF"      // a subfunction: an auxiliary device of a PF
	Virtual Kind = "virtual" // software RDMA on a netdev without hardware below it
)

// Device is one function that carries RDMA, or could: a PF, VF or SF of a
// card, or software RDMA on a netdev. It stays the same Device while its RDMA
// device and its netdevs move to another network namespace or have not
// appeared yet.
type Device struct {
	ID        string     `json:"id"` // PCI address, auxiliary device or, for software RDMA, RDMA device name
	Kind      Kind       `json:"kind"`
	Rail      *int       `json:"rail,omitempty"`      // nil where no rail is known
	Parent    string     `json:"parent,omitempty"`    // ID of the PF of a VF or SF
	VF        *int       `json:"vf,omitempty"`        // number of a VF on its PF
	SF        *int       `json:"sf,omitempty"`        // number of an SF
	PCI       *PCI       `json:"pci,omitempty"`       // nil for software RDMA on a netdev without hardware
	SRIOV     *SRIOV     `json:"sriov,omitempty"`     // of a PF that can have VFs
	RDMA      *RDMA      `json:"rdma,omitempty"`      // nil when there is no RDMA device
	Bond      *Bond      `json:"bond,omitempty"`      // when it is a member of a bond
	CarriedBy string     `json:"carriedBy,omitempty"` // RDMA device of another function that stands for this one too: of a bond, or of an eswitch over several ports
	Netdevs   []Netdev   `json:"netdevs,omitempty"`   // its own first, then those above it and those that its RDMA device shares
	GPUs      []Affinity `json:"gpus,omitempty"`      // nearest first
}

// IsRoot tells whether a device stands for a whole port of a card here, and not
// for a share of one: a PF, or a VF whose PF is in another machine.
func (d *Device) IsRoot() bool { return d.Kind == PF || d.Kind == VF && d.Parent == "" }

// PCI describes the PCI function of a device; of an SF, its parent's.
type PCI struct {
	Address   string  `json:"address"`             // 0000:17:00.0
	Vendor    string  `json:"vendor"`              // 15b3
	Device    string  `json:"device"`              // 1021
	Subsystem string  `json:"subsystem,omitempty"` // vendor:device of the card's maker
	Driver    string  `json:"driver,omitempty"`
	NUMANode  *int    `json:"numaNode,omitempty"`
	LocalCPUs string  `json:"localCPUs,omitempty"` // 0-31,64-95
	Root      string  `json:"root,omitempty"`      // PCIe root complex: pci0000:16
	RootPort  string  `json:"rootPort,omitempty"`  // PCI address of the root port
	Switch    string  `json:"switch,omitempty"`    // PCI address of the upstream port of the nearest PCIe switch
	Link      PCILink `json:"link,omitzero"`
	LinkMax   PCILink `json:"linkMax,omitzero"`
}

// PCILink is the speed and width of a PCIe link; zero where unknown.
type PCILink struct {
	GigaTransfers float64 `json:"gigaTransfers,omitempty"` // GT/s per lane
	Lanes         int     `json:"lanes,omitempty"`
}

// SRIOV is what a PF has of VFs.
type SRIOV struct {
	TotalVFs     int  `json:"totalVFs"` // as many as the firmware offers now
	NumVFs       int  `json:"numVFs"`
	AutoprobeVFs bool `json:"autoprobeVFs"` // whether a driver binds new VFs
}

// RDMA is the RDMA device of a Device.
type RDMA struct {
	Name         string       `json:"name"`               // mlx5_0
	Index        *uint32      `json:"index,omitempty"`    // of this registration; nil where only sysfs told
	Protocol     string       `json:"protocol,omitempty"` // "roce", "ib", "iw"
	NodeGUID     string       `json:"nodeGUID,omitempty"`
	SysImageGUID string       `json:"sysImageGUID,omitempty"`
	Firmware     string       `json:"firmware,omitempty"`
	BoardID      string       `json:"boardID,omitempty"`
	HCAType      string       `json:"hcaType,omitempty"` // MT4129
	Ports        []Port       `json:"ports"`
	CharDevices  []CharDevice `json:"charDevices,omitempty"`
	NetNS        *NetNS       `json:"netns,omitempty"` // where it is; nil for the namespace we look from
}

// NetNS is another network namespace, such as a pod's.
type NetNS struct {
	netns.ID
	Path string `json:"path,omitempty"` // a path that opened it
}

// Name is the name that "ip netns" has for a namespace, or the process that is
// in it.
func (n *NetNS) Name() string {
	dir, name := path.Split(n.Path)
	if path.Base(dir) == "netns" {
		return name
	}
	if process, ok := strings.CutSuffix(n.Path, "/ns/net"); ok {
		return "process " + path.Base(process)
	}
	return cmp.Or(n.Path, n.String())
}

// Port is a port of an RDMA device. A speed, width or MTU that the kernel does
// not tell is zero.
type Port struct {
	Number      int     `json:"number"`
	LinkLayer   string  `json:"linkLayer"`             // "Ethernet", "InfiniBand"; "Unknown" for a protocol of the vendor's own
	State       string  `json:"state"`                 // "ACTIVE", "DOWN", "INIT", "ARMED"
	PhysState   string  `json:"physState,omitempty"`   // "LINK_UP", "DISABLED", "POLLING"
	Netdev      string  `json:"netdev,omitempty"`      // the netdev that carries it; one of Device.Netdevs or a bond
	Representor bool    `json:"representor,omitempty"` // it stands on an eswitch for a port of another function
	Gigabits    float64 `json:"gigabits,omitempty"`    // per second
	MaxGigabits float64 `json:"maxGigabits,omitempty"` // what the port could do
	Lanes       int     `json:"lanes,omitempty"`
	Speed       string  `json:"speed,omitempty"`   // name of an InfiniBand speed: "NDR"
	MTU         int     `json:"mtu,omitempty"`     // of the netdev
	MaxMTU      int     `json:"maxMTU,omitempty"`  // of the netdev
	RDMAMTU     int     `json:"rdmaMTU,omitempty"` // RoCE: largest packet payload that the netdev's MTU lets through
	LID         uint32  `json:"lid,omitempty"`
	SMLID       uint32  `json:"smLID,omitempty"`
	GUID        string  `json:"guid,omitempty"` // of an InfiniBand port
	GIDTableLen int     `json:"gidTableLen,omitempty"`
	GIDs        []GID   `json:"gids,omitempty"`
}

// GID is an entry of a port's GID table that is in use.
type GID struct {
	Index   int        `json:"index"`
	GID     string     `json:"gid"`
	Type    string     `json:"type,omitempty"`   // "RoCE v2", "IB/RoCE v1"
	Netdev  string     `json:"netdev,omitempty"` // empty when it is in another namespace
	Address netip.Addr `json:"address,omitzero"` // the IP address it stands for; invalid where it is not RoCE
}

// CharDevice is a character device of an RDMA device.
type CharDevice struct {
	Name   string `json:"name"` // uverbs0, umad0, issm0
	Port   int    `json:"port,omitempty"`
	Major  uint32 `json:"major"`
	Minor  uint32 `json:"minor"`
	Exists bool   `json:"exists"` // in /dev/infiniband
}

// Netdev is a network device of a Device.
type Netdev struct {
	Name      string         `json:"name"`
	Index     int            `json:"index"`
	Address   string         `json:"address,omitempty"` // link layer: aa:bb:…
	Up        bool           `json:"up"`                // as the administrator wants it
	Running   bool           `json:"running"`           // it has a carrier
	MTU       int            `json:"mtu,omitempty"`
	MaxMTU    int            `json:"maxMTU,omitempty"`
	Master    string         `json:"master,omitempty"` // bond or bridge it belongs to
	DevPort   int            `json:"devPort"`          // which port of a multi-port function, from 0
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	NetNS     *NetNS         `json:"netns,omitempty"` // where it is; nil for the namespace we look from
}

// Bond is the bond that a device's netdev belongs to.
type Bond struct {
	Name    string   `json:"name"`           // bond0
	Mode    string   `json:"mode,omitempty"` // 802.3ad
	Members []string `json:"members"`        // netdev names, sorted
}

// GPU is a GPU of the node.
type GPU struct {
	Address  string `json:"address"` // PCI
	Vendor   string `json:"vendor"`
	Device   string `json:"device"`
	Driver   string `json:"driver,omitempty"`
	NUMANode *int   `json:"numaNode,omitempty"`
	Root     string `json:"root,omitempty"` // PCIe root complex
}

// Affinity is how near a GPU is to a device.
type Affinity struct {
	GPU      string   `json:"gpu"` // PCI address
	Distance Distance `json:"distance"`
}

// Device returns the device with an ID, an RDMA device name or a netdev name.
func (s *Snapshot) Device(name string) (*Device, bool) {
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.ID == name || d.RDMA != nil && d.RDMA.Name == name {
			return d, true
		}
		for _, n := range d.Netdevs {
			if n.Name == name && n.NetNS == nil {
				return d, true
			}
		}
	}
	return nil, false
}
