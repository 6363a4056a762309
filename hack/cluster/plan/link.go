package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Link is a cable: one end is a netdev of a node, the other a port of a bridge
// in the fabric.
type Link struct {
	Node      string
	Netdev    string         // the node's end: eth0, enp11s0f0np0
	MAC       string         // of Netdev
	MTU       int            // of both ends
	Addresses []netip.Prefix // of Netdev
	Port      string         // the fabric's end: n1, n1r0
	Bridge    string         // that Port is in: br0, rail0
}

func (l Link) String() string { return l.Node + " " + l.Netdev }

// Links are the cables of a node: eth0, then its rails in their order.
func (c *Cluster) Links(n Node) []Link {
	links := []Link{{
		Node: n.Name, Netdev: Eth0, MAC: n.MAC, MTU: HostMTU, Addresses: n.Host, Port: n.Uplink, Bridge: Bridge,
	}}
	for _, p := range n.Ports {
		links = append(links, Link{
			Node: n.Name, Netdev: p.Netdev, MAC: p.MAC, MTU: RailMTU, Addresses: p.Addresses, Port: p.Switch, Bridge: c.Rails[p.Rail].Bridge,
		})
	}
	return links
}

// Link finds a cable of a node by what a user calls it: the netdev (eth0,
// enp11s0f0np0), the rail (rail0) or the rail's number (0).
func (c *Cluster) Link(node, name string) (Link, error) {
	n, ok := c.Node(node)
	if !ok {
		return Link{}, fmt.Errorf("node %q: want one of %s", node, listed(c.Nodes, func(n Node) string { return n.Name }))
	}
	links := c.Links(n)
	i := slices.IndexFunc(links, func(l Link) bool {
		return name == l.Netdev || l.Netdev != Eth0 && name == l.Bridge
	})
	if r, err := strconv.Atoi(name); err == nil && r >= 0 && r < len(n.Ports) {
		i = 1 + r
	}
	if i < 0 {
		return Link{}, fmt.Errorf("link %q of %s: want one of %s, or a rail as rail0 or 0",
			name, node, listed(links, func(l Link) string { return l.Netdev }))
	}
	return links[i], nil
}

// listed names everything there is, for errors.
func listed[T any](all []T, name func(T) string) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = name(a)
	}
	return strings.Join(names, ", ")
}
