package attachbench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

const rails = 8

// parentIndex is the index of the first rail's netdev on the node.
const parentIndex = 1000

// world is a node with rails, and a switch with gateways.
type world struct {
	node *rtnl.Client
	pods int
}

// pod is one pod's sandbox.
type pod struct {
	number int
	id     string // of its container
	path   string // of its network namespace
	ns     *netns.NS
	inside *rtnl.Client
	peer   net.HardwareAddr // of the node's end of eth0
}

// newWorld makes a world of the node whose namespace the process is in.
func newWorld(b *testing.B) *world {
	b.Helper()
	node, err := netns.Current()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = node.Close() })
	w := &world{node: dial(b, node.FD())}
	fabric := open(b, kerneltest.NewNetNS(b))
	gateways := dial(b, fabric.FD())
	do(b, w.node, rtnl.LinkSet{Index: 1, Up: new(true)})
	for i := range rails {
		do(b, w.node, rtnl.LinkAdd{
			Name: parent(i), Kind: "veth", Index: parentIndex + i, Up: true, MTU: 9000,
			Peer: rtnl.VethPeer{Name: parent(i), NetNS: fabric.FD(), Index: parentIndex + i, MTU: 9000},
		})
		b.Cleanup(func() { do(b, w.node, rtnl.LinkDelete{Index: parentIndex + i}) })
		do(b, gateways, rtnl.LinkSet{Index: parentIndex + i, Up: new(true)})
	}
	answer(b, fabric)
	return w
}

// newPod makes a sandbox with lo only.
func (w *world) newPod(b *testing.B) *pod {
	b.Helper()
	file := kerneltest.NewNetNS(b)
	n := w.pods
	w.pods++
	p := &pod{
		number: n, id: fmt.Sprintf("pod-%03d", n), path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()),
		ns: open(b, file), peer: net.HardwareAddr{2, 0, 1, 0, 0, byte(n)},
	}
	p.inside = dial(b, p.ns.FD())
	do(b, p.inside, rtnl.LinkSet{Index: 1, Up: new(true)})
	return p
}

// newPodWithEth0 makes a sandbox with an eth0 as other plugins leave it.
func (w *world) newPodWithEth0(b *testing.B) *pod {
	b.Helper()
	const index = 2
	p := w.newPod(b)
	do(b, w.node, rtnl.LinkAdd{
		Name: p.veth(), Kind: "veth", Index: 2000 + p.number, Up: true, MAC: p.peer,
		Peer: rtnl.VethPeer{Name: "eth0", NetNS: p.ns.FD(), Index: index},
	})
	b.Cleanup(func() { do(b, w.node, rtnl.LinkDelete{Index: 2000 + p.number}) })
	do(b, p.inside, rtnl.LinkSet{Index: index, Up: new(true)},
		rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: index, Prefix: p.eth0()}},
		rtnl.RouteAdd{Route: rtnl.Route{Dst: everywhere(), Gateway: podGateway(), LinkIndex: index}})
	return p
}

// veth is the node's end of eth0.
func (p *pod) veth() string { return fmt.Sprintf("veth%d", p.number) }

func (p *pod) eth0() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, 0, byte(p.number + 10)}), 24)
}

func podGateway() netip.Addr { return netip.AddrFrom4([4]byte{10, 244, 0, 1}) }

func everywhere() netip.Prefix { return netip.PrefixFrom(netip.IPv4Unspecified(), 0) }

// address is a pod's on a rail.
func (p *pod) address(rail int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + rail), 1, byte(p.number + 1)}), subnet(rail).Bits())
}

// mac is a pod's on a rail.
func (p *pod) mac(rail int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, 0, byte(p.number), byte(rail)}
}

func parent(rail int) string { return fmt.Sprintf("rail%d", rail) }

func subnet(rail int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + rail), 0, 0}), 16)
}

func gateway(rail int) netip.Addr {
	return netip.AddrFrom4([4]byte{172, byte(16 + rail), 255, 254})
}

// name is that of an interface in a pod.
func name(rail int) string { return fmt.Sprintf("net%d", rail+1) }

// open opens the namespace that a file is.
func open(tb testing.TB, file *os.File) *netns.NS {
	tb.Helper()
	ns, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = ns.Close() })
	return ns
}

func dial(tb testing.TB, fd int) *rtnl.Client {
	tb.Helper()
	c, err := rtnl.Dial(&rtnl.Config{NetNS: fd})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func do(tb testing.TB, c *rtnl.Client, requests ...rtnl.Request) {
	tb.Helper()
	if err := errors.Join(c.Do(requests...)...); err != nil {
		tb.Fatal(err)
	}
}
