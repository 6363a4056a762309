// Package plan says what a cluster consists of before anything of it exists:
// names, addresses and interfaces, computed from a few options. It touches
// nothing; everything else in hack/cluster reads it.
package plan

import (
	"errors"
	"fmt"
	"net/netip"
)

// Limits of the addresses below: the fourth byte of a node's address is ten
// and its number, that of a rail's address two hundred and its number, so that
// pools as in the documents (.1 to .200) stay free.
const (
	MaxNodes = 50
	MaxRails = 16
)

// MTUs of the links. Rails carry jumbo frames, as RDMA networks do.
const (
	HostMTU = 1500
	RailMTU = 9000
)

// Options are what a user chooses. The zero value of a field is not a default.
type Options struct {
	Nodes int  `json:"nodes"` // 1 to MaxNodes
	Rails int  `json:"rails"` // of each node, 0 to MaxRails
	IPv4  bool `json:"ipv4"`
	IPv6  bool `json:"ipv6"` // with IPv4: dual stack, IPv4 first
}

// Cluster is the plan of one cluster. Slices of addresses have one entry a
// family, in the order of the cluster's families, at least one.
type Cluster struct {
	Options  Options        `json:"options"`
	MAC      string         `json:"mac"`      // of the fabric's bridge for nodes
	Host     []netip.Prefix `json:"host"`     // of that bridge: gateway of the nodes, and where the API server is
	Pods     []netip.Prefix `json:"pods"`     // all pods of all nodes
	Services []netip.Prefix `json:"services"` // all cluster addresses
	API      []netip.Addr   `json:"api"`      // first service address: the Service "kubernetes"
	DNS      []netip.Addr   `json:"dns"`      // cluster address of the cluster's DNS
	Rails    []Rail         `json:"rails"`
	Nodes    []Node         `json:"nodes"`
}

// Rail is one leaf switch: a bridge in the fabric that owns the gateways.
type Rail struct {
	Index    int            `json:"index"`
	Bridge   string         `json:"bridge"`   // rail0
	MAC      string         `json:"mac"`      // of Bridge
	Netdev   string         `json:"netdev"`   // its interface in each node: enp11s0f0np0
	Gateways []netip.Prefix `json:"gateways"` // 172.16.11.254/24
}

// Node is one machine with a kubelet.
type Node struct {
	Index  int            `json:"index"`  // from 1
	Name   string         `json:"name"`   // node1
	Uplink string         `json:"uplink"` // the fabric's end of its eth0: n1
	MAC    string         `json:"mac"`    // of eth0
	Host   []netip.Prefix `json:"host"`   // of eth0: 10.99.0.11/24
	Pods   []netip.Prefix `json:"pods"`   // 10.244.1.0/24
	Ports  []Port         `json:"ports"`  // one a rail
}

// Port is where a node is connected to a rail.
type Port struct {
	Rail      int            `json:"rail"`
	Netdev    string         `json:"netdev"`    // in the node: enp11s0f0np0
	Switch    string         `json:"switch"`    // the fabric's end: n1r0
	MAC       string         `json:"mac"`       // of Netdev
	Addresses []netip.Prefix `json:"addresses"` // of Netdev: 172.16.11.201/24
}

// Fabric is the name of the machine that has all bridges and the control
// plane; Bridge is the bridge that eth0 of every node leads to.
const (
	Fabric = "fabric"
	Bridge = "br0"
	Eth0   = "eth0"
)

// New makes a plan. An error names each option that cannot be.
func New(o Options) (*Cluster, error) {
	var errs []error
	if o.Nodes < 1 || o.Nodes > MaxNodes {
		errs = append(errs, fmt.Errorf("nodes %d: want 1 to %d", o.Nodes, MaxNodes))
	}
	if o.Rails < 0 || o.Rails > MaxRails {
		errs = append(errs, fmt.Errorf("rails %d: want 0 to %d", o.Rails, MaxRails))
	}
	if !o.IPv4 && !o.IPv6 {
		errs = append(errs, errors.New("neither IPv4 nor IPv6: want at least one"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c := &Cluster{
		Options:  o,
		MAC:      mac(0, gatewayByte),
		Host:     o.families(prefix4(10, 99, 0, 1, 24), prefix6("fd00:99::1/64")),
		Pods:     o.families(prefix4(10, 244, 0, 0, 16), prefix6("fd00:244::/48")),
		Services: o.families(prefix4(10, 96, 0, 0, 16), prefix6("fd00:96::/112")),
	}
	for _, s := range c.Services {
		c.API = append(c.API, s.Addr().Next())
		c.DNS = append(c.DNS, nth(s.Addr(), 10))
	}
	for r := range o.Rails {
		c.Rails = append(c.Rails, o.rail(r))
	}
	for n := 1; n <= o.Nodes; n++ {
		c.Nodes = append(c.Nodes, o.node(n))
	}
	return c, nil
}

// Node finds a node by its name.
func (c *Cluster) Node(name string) (Node, bool) {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}

func (o Options) rail(r int) Rail {
	return Rail{
		Index:    r,
		Bridge:   fmt.Sprintf("rail%d", r),
		MAC:      mac(1+r, gatewayByte),
		Netdev:   netdev(r),
		Gateways: o.families(prefix4(172, 16, byte(11+r), 254, 24), prefix6(fmt.Sprintf("fd00:16:%d::fe/64", 11+r))),
	}
}

func (o Options) node(n int) Node {
	node := Node{
		Index:  n,
		Name:   fmt.Sprintf("node%d", n),
		Uplink: fmt.Sprintf("n%d", n),
		MAC:    mac(0, n),
		Host:   o.families(prefix4(10, 99, 0, byte(10+n), 24), prefix6(fmt.Sprintf("fd00:99::%d/64", 10+n))),
		Pods:   o.families(prefix4(10, 244, byte(n), 0, 24), prefix6(fmt.Sprintf("fd00:244:0:%d::/64", n))),
	}
	for r := range o.Rails {
		node.Ports = append(node.Ports, Port{
			Rail:      r,
			Netdev:    netdev(r),
			Switch:    fmt.Sprintf("n%dr%d", n, r),
			MAC:       mac(1+r, n),
			Addresses: o.families(prefix4(172, 16, byte(11+r), byte(200+n), 24), prefix6(fmt.Sprintf("fd00:16:%d::%d/64", 11+r, 200+n))),
		})
	}
	return node
}

// netdev is the name of a rail's interface, as the documents have them.
func netdev(rail int) string { return fmt.Sprintf("enp%ds0f0np0", 11+rail) }

// gatewayByte ends the hardware addresses of the fabric's bridges.
const gatewayByte = 0xfe

// mac is the hardware address of a machine on a bridge. It is the same after a
// reboot, so that neighbours need not learn it anew.
func mac(bridge, machine int) string { return fmt.Sprintf("02:72:68:%02x:00:%02x", bridge, machine) }

// families leaves out the family that the cluster does not have.
func (o Options) families(v4, v6 netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	if o.IPv4 {
		all = append(all, v4)
	}
	if o.IPv6 {
		all = append(all, v6)
	}
	return all
}

func prefix4(a, b, c, d byte, bits int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits)
}

func prefix6(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// nth is the address so many after another.
func nth(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}
