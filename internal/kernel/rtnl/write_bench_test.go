package rtnl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	vishvananda "github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/versus"
)

// rails are what a pod gets: so many macvlans, each with an address, two routes in
// a table of its own and a rule for it.
const rails = 8

// railGroup and railIndex are the group and, less the rail, the index of the links.
const (
	railGroup = 77
	railIndex = 1000
)

// benchPod is a node's namespace with a parent link, and a pod's.
type benchPod struct {
	parent       int
	ns           *os.File
	node, inside *Client

	peerNode, peerInside *vishvananda.Handle
}

// BenchmarkAttach gives a pod its rails, in two batches, against the same by
// package vishvananda/netlink, request after request, and takes them away again,
// on both sides in the same batch. add-ms, peer-add-ms and x-peer-add are of the
// giving alone, by the clock. It needs root, or a user namespace: unshare -rn.
func BenchmarkAttach(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("makes network namespaces: run it as root, or in unshare -rn")
	}
	p := newBenchPod(b)
	var ours, theirs stopwatch
	versus.Peer(b, ours.of(p.attach, p.detach), theirs.of(p.peerAttach, p.detach))
	b.ReportMetric(ours.mean(), "add-ms")
	b.ReportMetric(theirs.mean(), "peer-add-ms")
	b.ReportMetric(ours.mean()/theirs.mean(), "x-peer-add")
}

// BenchmarkDetach takes the rails away by their group, against deleting them one
// after the other, after they were given in the same way on both sides. del-ms,
// peer-del-ms and x-peer-del are of the taking alone, by the clock.
func BenchmarkDetach(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("makes network namespaces: run it as root, or in unshare -rn")
	}
	p := newBenchPod(b)
	var ours, theirs stopwatch
	versus.Peer(b, ours.after(p.attach, p.detach), theirs.after(p.attach, p.peerDetach))
	b.ReportMetric(ours.mean(), "del-ms")
	b.ReportMetric(theirs.mean(), "peer-del-ms")
	b.ReportMetric(ours.mean()/theirs.mean(), "x-peer-del")
}

// stopwatch times one half of what is done again and again.
type stopwatch struct {
	total time.Duration
	runs  int
}

// of times first, and then does then.
func (s *stopwatch) of(first, then func() error) func() error {
	return func() error { return errors.Join(s.time(first), then()) }
}

// after does first, and then times then.
func (s *stopwatch) after(first, then func() error) func() error {
	return func() error { return errors.Join(first(), s.time(then)) }
}

func (s *stopwatch) time(do func() error) error {
	start := time.Now()
	err := do()
	s.total += time.Since(start)
	s.runs++
	return err
}

// mean returns milliseconds.
func (s *stopwatch) mean() float64 {
	return float64(s.total.Nanoseconds()) / float64(s.runs) / float64(time.Millisecond)
}

func newBenchPod(b *testing.B) *benchPod {
	b.Helper()
	outside := kerneltest.NewNetNS(b)
	p := &benchPod{ns: kerneltest.NewNetNS(b), parent: 100}
	p.node, p.inside = dialIn(b, outside), dialIn(b, p.ns)
	must(b, p.node, LinkAdd{Name: "v0", Kind: "veth", Index: p.parent, Up: true, Peer: VethPeer{Name: "v1", Index: 101}},
		LinkSet{Index: 101, Up: new(true)})
	var err1, err2 error
	p.peerNode, err1 = vishvananda.NewHandleAt(netns.NsHandle(outside.Fd()), unix.NETLINK_ROUTE)
	p.peerInside, err2 = vishvananda.NewHandleAt(netns.NsHandle(p.ns.Fd()), unix.NETLINK_ROUTE)
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.peerNode.Close)
	b.Cleanup(p.peerInside.Close)
	return p
}

// rail is what of a rail both sides need.
type rail struct {
	name            string
	mac             net.HardwareAddr
	address, subnet netip.Prefix
	gateway         netip.Addr
	table, priority int
}

func railOf(i int) rail {
	n := byte(i)
	address := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, n, 2}), 24)
	return rail{
		name: fmt.Sprintf("net%d", i+1), mac: net.HardwareAddr{2, 0, 0, 0, 1, n}, address: address, subnet: address.Masked(),
		gateway: netip.AddrFrom4([4]byte{172, 16, n, 254}), table: 100 + i, priority: 1000 + i,
	}
}

func (p *benchPod) attach() error {
	var links, rest []Request
	for i := range rails {
		r, index := railOf(i), railIndex+i
		links = append(links, LinkAdd{
			Name: r.name, Kind: "macvlan", Mode: "bridge", Parent: p.parent, Index: index, NetNS: int(p.ns.Fd()),
			MAC: r.mac, MTU: 1500, Group: railGroup, Up: true,
		})
		rest = append(rest,
			AddressAdd{Address{LinkIndex: index, Prefix: r.address, Broadcast: SubnetBroadcast(r.address)}},
			RouteAdd{Route: Route{Dst: r.subnet, LinkIndex: index, Src: r.address.Addr(), Table: r.table}},
			RouteAdd{Route: Route{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Gateway: r.gateway, LinkIndex: index, Table: r.table}},
			RuleAdd{Rule{Src: netip.PrefixFrom(r.address.Addr(), 32), Table: r.table, Priority: r.priority}},
		)
	}
	return errors.Join(errors.Join(p.node.Do(links...)...), errors.Join(p.inside.Do(rest...)...))
}

func (p *benchPod) detach() error {
	return errors.Join(p.inside.Do(append(ruleDeletes(), LinkDeleteGroup{Group: railGroup})...)...)
}

func (p *benchPod) peerDetach() error {
	requests := ruleDeletes()
	for i := range rails {
		requests = append(requests, LinkDelete{Index: railIndex + i})
	}
	for _, r := range requests {
		if err := errors.Join(p.inside.Do(r)...); err != nil {
			return err
		}
	}
	return nil
}

func ruleDeletes() []Request {
	var requests []Request
	for i := range rails {
		r := railOf(i)
		requests = append(requests, RuleDelete{Rule{Src: netip.PrefixFrom(r.address.Addr(), 32), Table: r.table, Priority: r.priority}})
	}
	return requests
}

func (p *benchPod) peerAttach() error {
	for i := range rails {
		if err := p.peerRail(railOf(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *benchPod) peerRail(r rail) error {
	attrs := vishvananda.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU, attrs.Group = r.name, r.mac, 1500, railGroup
	attrs.ParentIndex, attrs.Namespace = p.parent, vishvananda.NsFd(p.ns.Fd())
	if err := p.peerNode.LinkAdd(&vishvananda.Macvlan{LinkAttrs: attrs, Mode: vishvananda.MACVLAN_MODE_BRIDGE}); err != nil {
		return err
	}
	link, err := p.peerInside.LinkByName(r.name)
	if err != nil {
		return err
	}
	if err := p.peerInside.LinkSetUp(link); err != nil {
		return err
	}
	if err := p.peerInside.AddrAdd(link, &vishvananda.Addr{IPNet: ipNet(r.address)}); err != nil {
		return err
	}
	index := link.Attrs().Index
	for _, route := range []*vishvananda.Route{
		{LinkIndex: index, Dst: ipNet(r.subnet), Src: r.address.Addr().AsSlice(), Table: r.table, Scope: vishvananda.SCOPE_LINK},
		{LinkIndex: index, Gw: r.gateway.AsSlice(), Table: r.table},
	} {
		if err := p.peerInside.RouteAdd(route); err != nil {
			return err
		}
	}
	rule := vishvananda.NewRule()
	rule.Src, rule.Table, rule.Priority = ipNet(netip.PrefixFrom(r.address.Addr(), 32)), r.table, r.priority
	return p.peerInside.RuleAdd(rule)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
