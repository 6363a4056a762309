package routing

import (
	"net"
	"net/netip"
)

// Result is how a pod routes. Lists are in the order in which they are to be
// applied and the same for the same Pod, whatever the order of its interfaces.
// Links are named, as both ends may know them by other numbers.
//
// It is applied in this order: Veth and links, Pod.Sysctls, Addresses,
// Pod.Neighbours, Pod.Remove, Pod.Routes, Pod.Rules, Marks, then Host.
type Result struct {
	Links     []Link // one for each interface
	Veth      *Veth  // nil: none is made
	Addresses []Address
	Pod       Namespace
	Host      Namespace
	Marks     *Marks // nil: none are needed
	Notes     []Note // what an administrator should know; none keeps the pod from starting
}

// Link is what becomes of one interface.
type Link struct {
	Owner string
	Mode  string // "underlay", "overlay" or "disabled"; "" where there is no coordinator
	Table uint32 // its own in the pod; 0: it has none
	// MAC to set; nil: as it is made. MACFrom says why it is this one.
	MAC        net.HardwareAddr
	MACFrom    string
	TxQueueLen uint32 // packets; 0: as it is made
}

// Veth is a pair between pod and node, for pods whose first interface is none.
type Veth struct {
	Owner             string
	PodName, HostName string
	PodMAC, HostMAC   net.HardwareAddr
	MTU               uint32 // bytes
}

// Address is one of the pod's.
type Address struct {
	Owner  string
	Dev    string
	Prefix netip.Prefix
	// NoPrefixRoute (IFA_F_NOPREFIXROUTE) says that the kernel is not to make a
	// route of the subnet: Routes has it, with a metric.
	NoPrefixRoute bool
}

// Namespace is what one network namespace gets.
type Namespace struct {
	Sysctls []Sysctl
	// Remove are routes of others in the way of ours. They may be absent.
	Remove     []Route
	Routes     []Route
	Rules      []Rule
	Neighbours []Neighbour
}

// Sysctl is a setting, by its file below /proc/sys: names of links may have dots.
type Sysctl struct {
	Owner    string // "" for all interfaces
	Path     string // such as "net/ipv4/conf/net1/rp_filter"
	Value    string
	Optional bool // the kernel may be without it
}

// Route is a route of one table. On the node it replaces what an earlier pod
// with the address may have left.
type Route struct {
	Owner  string // interface of the pod that it is there for
	Why    Why
	Table  uint32
	Dst    netip.Prefix
	Via    netip.Addr // zero: Dst is on the link
	Dev    string
	Src    netip.Addr // zero: the kernel's choice
	Scope  Scope
	Metric uint32 // 0: the kernel's default
	OnLink bool   // Via is on Dev, though no subnet says so
	// Kernel says that it comes with the address and is not to be made: it is
	// here to be told and checked.
	Kernel bool
}

// Why is what a route is for.
type Why string

// Reasons for routes.
const (
	WhySubnet  Why = "subnet"
	WhyGateway Why = "gateway"
	WhyRoute   Why = "route of the pool or the pod"
	WhyPolicy  Why = "policyRoutes"
	WhyNode    Why = "node address"
	WhyPods    Why = "overlayPodCIDR"
	WhyService Why = "serviceCIDR"
	WhyHijack  Why = "hijackCIDR"
	WhyAnswer  Why = "answers to what came over the node"
	WhyPod     Why = "pod address"
)

// Scope is how far a destination is.
type Scope uint8

// Scopes as the kernel numbers them. IPv6 has the first only.
const (
	ScopeGlobal Scope = 0
	ScopeLink   Scope = 253
)

// TableMain is the kernel's main table.
const TableMain = 254

// Rule says which table packets are looked up in.
type Rule struct {
	Owner      string
	Family     int // 4 or 6
	Priority   uint32
	From       netip.Prefix // invalid: from all
	Mark, Mask uint32       // fwmark; Mask 0: it does not count
	Table      uint32
	Shared     bool // other pods use it: it stays when the pod goes
}

// Neighbour is a permanent entry.
type Neighbour struct {
	Owner string
	Dev   string
	IP    netip.Addr
	MAC   net.HardwareAddr
}

// Marks are how answers find back over the node: without them, the answer to a
// client whose address the node left as it is (externalTrafficPolicy: Local)
// would leave by eth0, and the node would not translate it back.
type Marks struct {
	Owner      string
	Dev        string // what comes in here is marked
	Mark, Mask uint32
	Reason     string
	// NFTables is the table for nft in the pod. Connection tracking carries the
	// mark from the question to its answers.
	NFTables string
}

// Note is a remark about an interface.
type Note struct {
	Owner string // "" for the pod
	Text  string
}
