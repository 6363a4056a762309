package standin

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"path/filepath"
)

// Node is what a stand-in is called and where it is. The fields are what a conflist's template may use.
//
// The addresses are beside those of nodes with a kubelet: nodes are 10.98.0.0/16, pods 10.128.0.0/9 with a /24 a node;
// fd00:98::/64 and fd00:128::/48 with a /64 a node.
type Node struct {
	Index    int            // from 1
	Name     string         // standin1
	Root     string         // what would be its root: /run/netns, /var/lib/kubelet and /var/lib/cni are below it
	Uplink   string         // the other end of its eth0: s1
	Hosts    []netip.Prefix // of eth0, one a family: 10.98.0.11/16
	Gateways []netip.Prefix // of the bridge that eth0 leads to: 10.98.0.1/16
	Pods     []netip.Prefix // 10.128.1.0/24
}

// nodes are the stand-ins that the options ask for.
func (o *Options) nodes() []Node {
	var all []Node
	for i := 1; i <= o.Nodes; i++ {
		n := Node{Index: i, Name: fmt.Sprintf("standin%d", i), Uplink: fmt.Sprintf("s%d", i)}
		n.Root = filepath.Join(o.Dir, n.Name)
		if o.IPv4 {
			n.Hosts = append(n.Hosts, prefix4(10<<24|98<<16, firstHost+i, 0, 16))
			n.Gateways = append(n.Gateways, prefix4(10<<24|98<<16, 1, 0, 16))
			n.Pods = append(n.Pods, prefix4(10<<24|128<<16, i, 8, 24))
		}
		if o.IPv6 {
			n.Hosts = append(n.Hosts, prefix6("fd00:98::", 15, firstHost+i, 64))
			n.Gateways = append(n.Gateways, prefix6("fd00:98::", 15, 1, 64))
			n.Pods = append(n.Pods, prefix6("fd00:128::", 7, i, 64))
		}
		all = append(all, n)
	}
	return all
}

// firstHost is the number of the last address before those of nodes.
const firstHost = 10

// prefix4 is an address with a number added above so many bits.
func prefix4(base uint32, number, shift, bits int) netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], base+uint32(number)<<shift)
	return netip.PrefixFrom(netip.AddrFrom4(a), bits)
}

// prefix6 is an address with a number in the two bytes that end at last.
func prefix6(base string, last, number, bits int) netip.Prefix {
	a := netip.MustParseAddr(base).As16()
	binary.BigEndian.PutUint16(a[last-1:], uint16(number))
	return netip.PrefixFrom(netip.AddrFrom16(a), bits)
}

// path is a path below the node's root.
func (n Node) path(name string) string { return filepath.Join(n.Root, name) }

// namespace is where the node's own network namespace is, which is not below its root on any node.
func (n Node) namespace() string { return n.Root + ".netns" }

// addresses are the addresses of prefixes as text.
func addresses(prefixes []netip.Prefix) []string {
	var all []string
	for _, p := range prefixes {
		all = append(all, p.Addr().String())
	}
	return all
}

// texts are prefixes as text.
func texts(prefixes []netip.Prefix) []string {
	var all []string
	for _, p := range prefixes {
		all = append(all, p.String())
	}
	return all
}
