package plan

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var prefixes = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})

func TestNew(t *testing.T) {
	t.Parallel()
	c := made(t, Options{Nodes: 2, Rails: 1, IPv4: true, IPv6: true})
	want := &Cluster{
		Options:  Options{Nodes: 2, Rails: 1, IPv4: true, IPv6: true},
		MAC:      "02:72:68:00:00:fe",
		Host:     both("10.99.0.1/24", "fd00:99::1/64"),
		Pods:     both("10.244.0.0/16", "fd00:244::/48"),
		Services: both("10.96.0.0/16", "fd00:96::/112"),
		API:      []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:96::1")},
		DNS:      []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:96::a")},
		Rails: []Rail{{
			Bridge: "rail0", MAC: "02:72:68:01:00:fe", Netdev: "enp11s0f0np0", Gateways: both("172.16.11.254/24", "fd00:16:11::fe/64"),
		}},
		Nodes: []Node{
			{
				Index: 1, Name: "node1", Uplink: "n1", MAC: "02:72:68:00:00:01",
				Host: both("10.99.0.11/24", "fd00:99::11/64"), Pods: both("10.244.1.0/24", "fd00:244:0:1::/64"),
				Ports: []Port{{
					Netdev: "enp11s0f0np0", Switch: "n1r0", MAC: "02:72:68:01:00:01", Addresses: both("172.16.11.201/24", "fd00:16:11::201/64"),
				}},
			},
			{
				Index: 2, Name: "node2", Uplink: "n2", MAC: "02:72:68:00:00:02",
				Host: both("10.99.0.12/24", "fd00:99::12/64"), Pods: both("10.244.2.0/24", "fd00:244:0:2::/64"),
				Ports: []Port{{
					Netdev: "enp11s0f0np0", Switch: "n2r0", MAC: "02:72:68:01:00:02", Addresses: both("172.16.11.202/24", "fd00:16:11::202/64"),
				}},
			},
		},
	}
	if diff := cmp.Diff(want, c, prefixes); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestNewOfOneFamily(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Nodes: 2, Rails: 2, IPv4: true}, {Nodes: 2, Rails: 2, IPv6: true}} {
		c := made(t, o)
		for _, p := range everyPrefix(c) {
			if p.Addr().Is4() != o.IPv4 {
				t.Errorf("options %+v: address %v of the other family", o, p)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		o    Options
		want []string
	}{
		{"too many nodes", Options{Nodes: MaxNodes + 1, IPv4: true}, []string{"nodes 51: want 1 to 50"}},
		{"no nodes", Options{IPv4: true}, []string{"nodes 0: want 1 to 50"}},
		{"too many rails", Options{Nodes: 1, Rails: MaxRails + 1, IPv4: true}, []string{"rails 17: want 0 to 16"}},
		{"no family", Options{Nodes: 1}, []string{"neither IPv4 nor IPv6"}},
		{"all at once", Options{Nodes: -1, Rails: -2}, []string{"nodes -1", "rails -2", "neither IPv4 nor IPv6"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := New(tt.o)
			if c != nil || err == nil {
				t.Fatalf("plan %v, error %v, want an error alone", c, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not have %q", err, want)
				}
			}
		})
	}
}

// TestLargestPlan looks for anything that two machines would both have, and
// for names that the kernel would refuse.
func TestLargestPlan(t *testing.T) {
	t.Parallel()
	c := made(t, Options{Nodes: MaxNodes, Rails: MaxRails, IPv4: true, IPv6: true})
	owner := map[string]string{}
	own := func(what, who string) {
		if other, taken := owner[what]; taken {
			t.Errorf("%s is of %s and of %s", what, other, who)
		}
		owner[what] = who
	}
	own(c.MAC, Bridge)
	for _, p := range c.Host {
		own(p.Addr().String(), Bridge)
	}
	for _, r := range c.Rails {
		own(r.MAC, r.Bridge)
		for _, p := range r.Gateways {
			own(p.Addr().String(), r.Bridge)
		}
	}
	for _, n := range c.Nodes {
		for i, p := range n.Pods {
			own(p.String(), n.Name)
			if !c.Pods[i].Contains(p.Addr()) || c.Pods[i].Bits() > p.Bits() {
				t.Errorf("pods %v of %s are not within %v", p, n.Name, c.Pods[i])
			}
		}
		for _, l := range c.Links(n) {
			own(l.MAC, l.String())
			own("port "+l.Port, l.String())
			for _, p := range l.Addresses {
				own(p.Addr().String(), l.String())
			}
			if _, err := net.ParseMAC(l.MAC); err != nil {
				t.Errorf("%v: %v", l, err)
			}
			for _, name := range []string{l.Netdev, l.Port, l.Bridge} {
				if len(name) > 15 { // IFNAMSIZ - 1
					t.Errorf("%v: name %q is too long for a link", l, name)
				}
			}
		}
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	c := made(t, Options{Nodes: 2, Rails: 2, IPv4: true})
	eth0 := Link{
		Node: "node2", Netdev: "eth0", MAC: "02:72:68:00:00:02", MTU: HostMTU,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.99.0.12/24")}, Port: "n2", Bridge: "br0",
	}
	rail1 := Link{
		Node: "node2", Netdev: "enp12s0f0np0", MAC: "02:72:68:02:00:02", MTU: RailMTU,
		Addresses: []netip.Prefix{netip.MustParsePrefix("172.16.12.202/24")}, Port: "n2r1", Bridge: "rail1",
	}
	for name, want := range map[string]Link{"eth0": eth0, "enp12s0f0np0": rail1, "rail1": rail1, "1": rail1} {
		got, err := c.Link("node2", name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if diff := cmp.Diff(want, got, prefixes); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
	if got, want := eth0.String(), "node2 eth0"; got != want {
		t.Errorf("link is called %q, want %q", got, want)
	}
}

func TestLinkRefuses(t *testing.T) {
	t.Parallel()
	c := made(t, Options{Nodes: 2, Rails: 2, IPv4: true})
	tests := []struct{ node, link, want string }{
		{"node3", "eth0", `node "node3": want one of node1, node2`},
		{"fabric", "eth0", `node "fabric": want one of node1, node2`},
		{"node1", "rail2", `link "rail2" of node1: want one of eth0, enp11s0f0np0, enp12s0f0np0`},
		{"node1", "2", `link "2" of node1`},
		{"node1", "-1", `link "-1" of node1`},
		{"node1", "br0", `link "br0" of node1`},
		{"node1", "", `link "" of node1`},
	}
	for _, tt := range tests {
		if l, err := c.Link(tt.node, tt.link); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("link %q of %q is %v, error %v, want %q", tt.link, tt.node, l, err, tt.want)
		}
	}
}

func made(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func both(v4, v6 string) []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix(v4), netip.MustParsePrefix(v6)}
}

func everyPrefix(c *Cluster) []netip.Prefix {
	var all []netip.Prefix
	all = append(append(append(all, c.Host...), c.Pods...), c.Services...)
	for _, r := range c.Rails {
		all = append(all, r.Gateways...)
	}
	for _, n := range c.Nodes {
		all = append(all, n.Pods...)
		for _, l := range c.Links(n) {
			all = append(all, l.Addresses...)
		}
	}
	return all
}

func ExampleCluster_Link() {
	c, err := New(Options{Nodes: 2, Rails: 8, IPv4: true})
	if err != nil {
		panic(err)
	}
	link, err := c.Link("node1", "rail7")
	fmt.Println(link, link.Addresses, "to", link.Port, "of", link.Bridge, err)
	// Output: node1 enp18s0f0np0 [172.16.18.201/24] to n1r7 of rail7 <nil>
}
