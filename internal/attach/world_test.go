package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/nft"
	"railhead/internal/kernel/rtnl"
)

// world is a node like that of spec/003, in a namespace, with a pod that has
// eth0 from another's plugin. Links have no link-local addresses of their own,
// which come and go in the background.
type world struct {
	tb   testing.TB
	home *os.File // the node's
	node *rtnl.Client
	ns   *os.File // the pod's
	pod  *rtnl.Client
	path string
	a    *Attacher

	rails   int    // of a pod
	podPeer int    // index of the node's end of eth0
	name    string // of it
}

const podPeer = "cali0123456789a"

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{tb: tb, home: kerneltest.NewNetNS(tb), ns: kerneltest.NewNetNS(tb), rails: 8, podPeer: 300, name: podPeer}
	w.path = pathOf(w.ns)
	w.node, w.pod = dial(tb, w.home), dial(tb, w.ns)
	w.inside(w.ns, w.quiet)
	w.inside(w.home, func() {
		w.quiet()
		w.a = w.attacher()
	})
	tb.Cleanup(func() {
		if err := w.a.Close(); err != nil {
			tb.Error(err)
		}
	})
	w.marks()
	w.must(w.node, rtnl.LinkAdd{Name: "up0", Kind: "veth", Index: 100, Up: true, Peer: rtnl.VethPeer{Name: "up1", Index: 101}},
		rtnl.LinkSet{Index: 101, Up: new(true)}, address(100, "10.1.20.4/24"), address(100, "fd00:20::4/64"))
	for n := range 8 {
		index := 110 + n
		w.must(w.node, rtnl.LinkAdd{Name: parentName(n), Kind: "veth", Index: index, Up: true, Peer: rtnl.VethPeer{Name: fmt.Sprintf("sw%d", n), Index: index + 50}},
			rtnl.LinkSet{Index: index + 50, Up: new(true)})
	}
	w.must(w.pod, rtnl.LinkSet{Index: 1, Up: new(true)})
	return w
}

// marks has the Attacher mark nothing where the kernel has no nf_tables.
func (w *world) marks() {
	w.tb.Helper()
	const table = "railhead_probe"
	err := w.a.mark(int(w.ns.Fd()), table, "lo", 1, 1)
	if err == nil {
		err = w.a.unmark(int(w.ns.Fd()), table)
	}
	switch {
	case errors.Is(err, nft.ErrNotSupported):
		w.tb.Logf("this kernel cannot mark, so that is left out: %v", err)
		w.a.mark = func(int, string, string, uint32, uint32) error { return nil }
		w.a.unmark = func(int, string) error { return nil }
	case err != nil:
		w.tb.Fatal(err)
	}
}

// calico gives the pod an eth0 as Calico does.
func (w *world) calico() {
	w.tb.Helper()
	w.must(w.node, rtnl.LinkAdd{
		Name: "eth0", Kind: "veth", Index: 3, NetNS: int(w.ns.Fd()), Up: true, MAC: mac("ca:39:52:fc:61:cd"), TxQueueLen: 1000,
		Peer: rtnl.VethPeer{Name: w.name, Index: w.podPeer, MAC: mac("ee:ee:ee:ee:ee:ee")},
	}, rtnl.LinkSet{Index: w.podPeer, Up: new(true)})
	w.must(w.pod, address(3, "10.233.119.164/32"), address(3, "fd85:ee78:d8a6:8607::1:a4/128"),
		rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("169.254.1.1/32"), LinkIndex: 3}},
		rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("0.0.0.0/0"), LinkIndex: 3, Gateway: ip("169.254.1.1")}},
		rtnl.RouteAdd{Route: rtnl.Route{Dst: prefix("::/0"), LinkIndex: 3, Gateway: ip("fe80::ecee:eeff:feee:eeee"), Priority: 1024}})
}

func pathOf(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

func parentName(n int) string { return fmt.Sprintf("enp%ds0f0np0", 11+n) }

func address(index int, text string) rtnl.AddressAdd {
	return rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: index, Prefix: prefix(text), NoDAD: strings.Contains(text, "::")}}
}

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
func ip(text string) netip.Addr       { return netip.MustParseAddr(text) }

func mac(text string) net.HardwareAddr {
	m, err := net.ParseMAC(text)
	if err != nil {
		panic(err)
	}
	return m
}

func dial(tb testing.TB, ns *os.File) *rtnl.Client {
	tb.Helper()
	var config rtnl.Config
	if ns != nil {
		config.NetNS = int(ns.Fd())
	}
	c, err := rtnl.Dial(&config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) must(c *rtnl.Client, requests ...rtnl.Request) {
	w.tb.Helper()
	if err := errors.Join(c.Do(requests...)...); err != nil {
		w.tb.Fatal(err)
	}
}

// attacher is another run of the agent. It is for the calling thread's namespace.
func (w *world) attacher() *Attacher {
	a, err := New(Config{})
	if err != nil {
		w.tb.Fatal(err)
	}
	return a
}

func (w *world) quiet() {
	for _, name := range []string{"all", "default"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/addr_gen_mode", []byte("1"), 0); err != nil {
			w.tb.Error(err)
		}
	}
}

// inside runs fn in a namespace.
func (w *world) inside(file *os.File, fn func()) {
	w.tb.Helper()
	ns, err := netns.Open(pathOf(file))
	if err != nil {
		w.tb.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if err := ns.Do(func() error { fn(); return nil }); err != nil {
		w.tb.Fatal(err)
	}
}

// newPod is another pod on the node.
func newPod(tb testing.TB, w *world) *world {
	tb.Helper()
	return newPodAt(tb, w, 1)
}

// newPodAt is one of several.
func newPodAt(tb testing.TB, w *world, n int) *world {
	tb.Helper()
	other := *w
	other.ns = kerneltest.NewNetNS(tb)
	other.path, other.pod = pathOf(other.ns), dial(tb, other.ns)
	other.podPeer, other.name = w.podPeer+n, fmt.Sprintf("cali%d", n)
	other.inside(other.ns, other.quiet)
	other.calico()
	return &other
}

// coordinated is how the cluster of spec/003 coordinates an interface.
func coordinated(change func(*routing.Options)) *routing.Options {
	o := &routing.Options{
		Mode: "auto", TunePodRoutes: true, HostRuleTable: 500, PodRPFilter: 0, VethMTU: 1500,
		PodCIDRs:     []netip.Prefix{prefix("10.233.64.0/18"), prefix("fd85:ee78:d8a6:8607::1:0/112")},
		ServiceCIDRs: []netip.Prefix{prefix("10.233.0.0/18"), prefix("fd85:ee78:d8a6:8607::1000/116")},
		HijackCIDRs:  []netip.Prefix{prefix("169.254.0.0/16")},
	}
	if change != nil {
		change(o)
	}
	return o
}

// eth0 is the pod's first interface, of which the kernel knows the rest.
func eth0() Interface {
	return Interface{Interface: routing.Interface{Name: "eth0", IsDefaultNetwork: true}}
}

// rail is a macvlan of spec/003: rail 0 is net1 with 172.16.11.10.
func rail(n int, o *routing.Options, families string) Interface {
	i := Interface{
		Interface: routing.Interface{Name: fmt.Sprintf("net%d", n+1), Rail: n, Coordinator: o},
		Link:      Link{Kind: Macvlan, Parent: Parent{Name: parentName(n)}},
	}
	bits := 24
	if strings.Contains(families, "/16") {
		bits = 16
	}
	if strings.Contains(families, "4") {
		i.Addresses = append(i.Addresses, prefix(fmt.Sprintf("172.16.%d.10/%d", 11+n, bits)))
		i.Gateways = append(i.Gateways, ip(fmt.Sprintf("172.16.%d.254", 11+n)))
	}
	if strings.Contains(families, "6") && !strings.HasSuffix(families, "4/16") {
		i.Addresses = append(i.Addresses, prefix(fmt.Sprintf("fd00:16:%d::10/64", 11+n)))
		i.Gateways = append(i.Gateways, ip(fmt.Sprintf("fd00:16:%d::fe", 11+n)))
	}
	return i
}

// podOf is a pod of the world.
func (w *world) podOf(interfaces ...Interface) Pod {
	return Pod{ContainerID: "0123456789abcdef0123456789abcdef", NetNS: w.path, Interfaces: interfaces, NodeAddresses: []netip.Addr{ip("10.1.20.4"), ip("fd00:20::4")}}
}

// eightRails is the pod of spec/003.
func (w *world) eightRails(families string) Pod {
	pod := w.podOf(eth0())
	pod.Peer = routing.Peer{Name: w.name, MAC: mac("ee:ee:ee:ee:ee:ee")}
	for n := range w.rails {
		pod.Interfaces = append(pod.Interfaces, rail(n, coordinated(nil), families))
	}
	return pod
}

func (w *world) plan(pod Pod) *Plan {
	w.tb.Helper()
	plan, err := w.a.Plan(w.tb.Context(), pod)
	if err != nil {
		w.tb.Fatal(err)
	}
	return plan
}

// state is all that there is in the two namespaces, as text.
type state struct{ Node, Pod []string }

// snapshot is what is to be as before. What the kernel does by itself in the
// background is not in it.
func (w *world) snapshot() state {
	w.tb.Helper()
	s := state{Node: w.contents(w.node), Pod: w.contents(w.pod)}
	w.inside(w.home, func() { s.Node = append(s.Node, w.settings()...) })
	w.inside(w.ns, func() { s.Pod = append(s.Pod, w.settings()...) })
	return s
}

func (w *world) contents(c *rtnl.Client) []string {
	w.tb.Helper()
	links, err1 := c.Links()
	addresses, err2 := c.Addresses()
	routes, err3 := c.Routes()
	rules, err4 := c.Rules()
	neighbours, err5 := c.Neighbours()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		w.tb.Fatal(err)
	}
	var all []string
	add := func(v any) { all = append(all, fmt.Sprintf("%T %+v", v, v)) }
	for _, l := range links {
		l.OperState, l.Running, l.ParentNetNS = "", false, nil
		add(l)
	}
	for _, a := range addresses {
		a.Tentative = false
		add(a)
	}
	for _, r := range routes {
		if r.Table == 255 {
			continue // the kernel's, which come when it has time
		}
		r.Dead, r.LinkDown = false, false
		for n := range r.NextHops {
			r.NextHops[n].Dead, r.NextHops[n].LinkDown = false, false
		}
		slices.SortFunc(r.NextHops, func(x, y rtnl.NextHop) int { return x.LinkIndex - y.LinkIndex })
		add(r)
	}
	for _, r := range rules {
		add(r)
	}
	for _, n := range neighbours {
		if n.State == "permanent" {
			add(n)
		}
	}
	slices.Sort(all)
	return all
}

// settings are the values of files below /proc/sys/net that something of ours
// writes, in the calling thread's namespace.
func (w *world) settings() []string {
	var all []string
	read := func(file string) {
		value, err := os.ReadFile("/proc/sys/net/" + file)
		if err == nil {
			all = append(all, file+" = "+strings.TrimSpace(string(value)))
		}
	}
	read("core/somaxconn")
	for _, link := range []string{"all", "default", "eth0", parentName(0)} {
		for _, name := range []string{"arp_announce", "arp_ignore", "arp_notify", "forwarding", "log_martians", "rp_filter", "src_valid_mark"} {
			read("ipv4/conf/" + link + "/" + name)
		}
		for _, name := range []string{"accept_dad", "accept_ra_defrtr", "addr_gen_mode", "disable_ipv6", "forwarding", "ndisc_notify"} {
			read("ipv6/conf/" + link + "/" + name)
		}
	}
	return all
}

func (w *world) same(what string, before state) {
	w.tb.Helper()
	if diff := cmp.Diff(before, w.snapshot()); diff != "" {
		w.tb.Errorf("%s (-before +after):\n%s", what, diff)
	}
}

// thereAndBack attaches a pod, and takes it away again.
func (w *world) thereAndBack(plan *Plan, before state) {
	w.tb.Helper()
	if _, err := w.a.Apply(w.tb.Context(), plan); err != nil {
		w.tb.Fatal(err)
	}
	if err := w.a.Check(w.tb.Context(), plan); err != nil {
		w.tb.Error(err)
	}
	if err := w.a.Undo(w.tb.Context(), plan, nil); err != nil {
		w.tb.Error(err)
	}
	w.same("undone", before)
}

// needsKind skips a test where the kernel has no links of a kind.
func (w *world) needsKind(kind string) {
	w.tb.Helper()
	add := rtnl.LinkAdd{Name: "probe0", Kind: kind}
	switch kind {
	case "vlan":
		add.Parent, add.VLANID = 110, 4000
	case "ipvlan":
		add.Parent, add.Mode = 110, "l2"
	}
	err := errors.Join(w.node.Do(add)...)
	if errors.Is(err, rtnl.ErrNotSupported) {
		w.tb.Skipf("this kernel has no %s: %v", kind, err)
	}
	if err != nil {
		w.tb.Fatal(err)
	}
	w.must(w.node, rtnl.LinkDelete{Name: "probe0"})
}

func (w *world) link(c *rtnl.Client, name string) rtnl.Link {
	w.tb.Helper()
	l, err := c.LinkByName(name)
	if err != nil {
		w.tb.Fatal(err)
	}
	return l
}

func (w *world) gone(c *rtnl.Client, name string) {
	w.tb.Helper()
	if l, err := c.LinkByName(name); !errors.Is(err, fs.ErrNotExist) {
		w.tb.Errorf("link %+v, %v: want none", l, err)
	}
}
