package fabric

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"railhead/hack/cluster/plan"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

var bothFamilies = plan.Options{Nodes: 3, Rails: 2, IPv4: true, IPv6: true}

// TestEverybodyReachesEverybody builds whole fabrics and connects, by TCP,
// from each node to all addresses of the others and of the fabric.
func TestEverybodyReachesEverybody(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]plan.Options{
		"IPv4": {Nodes: 2, Rails: 1, IPv4: true}, "IPv6": {Nodes: 2, Rails: 1, IPv6: true}, "dual stack": bothFamilies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				l := built(t, o)
				for _, n := range l.plan.Nodes {
					l.reaches(n.Name, plan.Fabric, l.plan.API...)
					for _, r := range l.plan.Rails {
						l.reaches(n.Name, plan.Fabric, addrs(r.Gateways)...)
					}
					for _, other := range l.plan.Nodes {
						for _, link := range l.plan.Links(other) {
							l.reaches(n.Name, other.Name, addrs(link.Addresses)...)
						}
					}
				}
			})
		})
	}
}

// TestPodsReachPods connects from a pod's address on one node to one on
// another, and from the fabric, where the API server calls webhooks. The
// addresses are on lo of the nodes, which have no pods here.
func TestPodsReachPods(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, bothFamilies)
		for _, n := range l.plan.Nodes {
			if err := l.in(n.Name, func(m machine) error { return m.loopback(pods(n)) }); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range l.plan.Nodes {
			l.reaches(plan.Fabric, n.Name, pods(n)...)
			for _, other := range l.plan.Nodes {
				l.reaches(n.Name, other.Name, pods(other)...)
			}
		}
	})
}

// TestLinksAreAsPlanned looks at what the kernel has.
func TestLinksAreAsPlanned(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, bothFamilies)
		for _, n := range l.plan.Nodes {
			for _, link := range l.plan.Links(n) {
				l.inside(n.Name, func() {
					dev, err := net.InterfaceByName(link.Netdev)
					if err != nil {
						t.Fatal(err)
					}
					if dev.HardwareAddr.String() != link.MAC || dev.MTU != link.MTU {
						t.Errorf("%v has address %v and MTU %d, want %s and %d", link, dev.HardwareAddr, dev.MTU, link.MAC, link.MTU)
					}
				})
			}
		}
		l.inside(plan.Fabric, func() {
			dev, err := net.InterfaceByName("rail1")
			if err != nil {
				t.Fatal(err)
			}
			if want := l.plan.Rails[1].MAC; dev.HardwareAddr.String() != want || dev.MTU != plan.RailMTU {
				t.Errorf("rail1 has address %v and MTU %d, want %s and %d", dev.HardwareAddr, dev.MTU, want, plan.RailMTU)
			}
		})
	})
}

// TestAgain does everything twice: the second time changes nothing.
func TestAgain(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, bothFamilies)
		before := l.everyLink()
		l.must(l.Build())
		for _, n := range l.plan.Nodes {
			l.must(l.Connect(n.Name))
		}
		if diff := cmp.Diff(before, l.everyLink()); diff != "" {
			t.Errorf("links after connecting again (-first +second):\n%s", diff)
		}
	})
}

// TestReboot gives a node another namespace, with the earlier one still there:
// the kernel ends namespaces, and the links in them, when it has time.
func TestReboot(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := built(t, bothFamilies)
		l.reaches("node1", "node2", addrs(l.plan.Nodes[1].Host)...)
		l.boot("node2")
		l.must(l.Connect("node2"))
		for _, link := range l.plan.Links(l.plan.Nodes[1]) {
			l.reaches("node1", "node2", addrs(link.Addresses)...)
			l.reaches("node2", "node1", addrs(l.plan.Nodes[0].Host)...)
		}
	})
}

// TestConnectKeepsOthersThingsApart: a link of the same name that is not ours
// is neither used nor removed, and does not keep the other cables out.
func TestConnectKeepsOthersThingsApart(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := planned(t, bothFamilies)
		l.must(l.Build())
		rail1 := l.plan.Nodes[0].Ports[1].Netdev
		l.inside("node1", func() { kerneltest.AddVeth(t, rail1, "theirs") })
		err := l.Connect("node1")
		for _, want := range []string{"node1", rail1, "n1r1", "rail1", "leads elsewhere"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not have %q", err, want)
			}
		}
		var connected []string
		for _, s := range l.states() {
			if s.Connected {
				connected = append(connected, s.Link.String())
			}
		}
		if want := []string{"node1 eth0", "node1 " + l.plan.Nodes[0].Ports[0].Netdev}; !slices.Equal(connected, want) {
			t.Errorf("connected %q, want %q", connected, want)
		}
		l.inside("node1", func() {
			if _, err := net.InterfaceByName("theirs"); err != nil {
				t.Errorf("the other end of what was there: %v", err)
			}
		})
	})
}

func TestErrorsNameTheMachine(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := planned(t, bothFamilies)
		link, err := l.plan.Link("node2", "rail0")
		l.must(err)
		l.gone("node2")
		for name, err := range map[string]error{
			"connect before the fabric is built": l.Connect("node1"),
			"connect what does not run":          l.Connect("node2"),
			"cut what is not connected":          l.Cut(link),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: error %v, want one of what does not exist", name, err)
			}
			if err != nil && !strings.Contains(err.Error(), "network of node2") && !strings.Contains(err.Error(), "network of fabric") {
				t.Errorf("%s: error %q does not name the machine", name, err)
			}
		}
		if err := l.Connect("node4"); err == nil || !strings.Contains(err.Error(), "want one of node1, node2, node3") {
			t.Errorf("connect a node that is not planned: error %v, want the nodes there are", err)
		}
	})
}

// lab is the machines of a plan, as empty namespaces.
type lab struct {
	*Fabric
	t        *testing.T
	machines map[string]*os.File
}

func planned(t *testing.T, o plan.Options) *lab {
	t.Helper()
	c, err := plan.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, machines: map[string]*os.File{}}
	l.Fabric = New(c, l.ns)
	l.boot(plan.Fabric)
	for _, n := range c.Nodes {
		l.boot(n.Name)
	}
	return l
}

func built(t *testing.T, o plan.Options) *lab {
	t.Helper()
	l := planned(t, o)
	l.must(l.Build())
	for _, n := range l.plan.Nodes {
		l.must(l.Connect(n.Name))
	}
	return l
}

// boot gives a machine a new namespace.
func (l *lab) boot(name string) {
	l.t.Helper()
	l.machines[name] = kerneltest.NewNetNS(l.t)
	l.inside(name, func() {
		for setting, value := range Sysctls(l.plan) {
			l.must(os.WriteFile(filepath.Join("/proc/sys", setting), []byte(value), 0))
		}
	})
}

// gone takes a machine away.
func (l *lab) gone(name string) {
	l.must(l.machines[name].Close())
	delete(l.machines, name)
}

func (l *lab) ns(name string) (*netns.NS, error) {
	file, ok := l.machines[name]
	if !ok {
		return nil, fmt.Errorf("machine %s does not run: %w", name, fs.ErrNotExist)
	}
	return netns.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}

// inside runs fn in a machine.
func (l *lab) inside(name string, fn func()) {
	l.t.Helper()
	ns, err := l.ns(name)
	l.must(err)
	defer func() { _ = ns.Close() }()
	l.must(ns.Do(func() error {
		fn()
		return nil
	}))
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// patience is how long what is to happen may take on a busy machine.
const patience = time.Minute

// reaches connects from one machine to addresses of another and wants to hear
// from it what it is sent.
func (l *lab) reaches(from, to string, addresses ...netip.Addr) {
	l.t.Helper()
	for _, a := range addresses {
		if err := l.dial(from, to, a); err != nil {
			l.t.Errorf("%s to %v of %s: %v", from, a, to, err)
		}
	}
}

func (l *lab) dial(from, to string, a netip.Addr) error {
	l.t.Helper()
	var listener net.Listener
	var err error
	l.inside(to, func() { listener, err = net.Listen("tcp", netip.AddrPortFrom(a, 0).String()) })
	l.must(err)
	defer func() { _ = listener.Close() }()
	go echo(listener)
	conn, err := l.connect(from, listener.Addr().String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	l.must(conn.SetDeadline(time.Now().Add(patience)))
	if _, err := io.WriteString(conn, "railhead"); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, len("railhead")))
	return err
}

// connect connects from a machine. A neighbour that did not answer for three seconds
// is given up by the kernel, and a bridge passes nothing on by a new port before a
// worker has seen its carrier (net/core/link_watch.c): who is unreachable by that is
// asked again.
func (l *lab) connect(from, to string) (conn net.Conn, err error) {
	l.t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		l.inside(from, func() { conn, err = net.DialTimeout("tcp", to, time.Until(deadline)) })
		if !errors.Is(err, unix.EHOSTUNREACH) || time.Now().After(deadline) {
			return conn, err
		}
	}
}

// echo answers one connection.
func echo(listener net.Listener) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.Copy(conn, conn)
}

func (l *lab) states() []State {
	l.t.Helper()
	states, err := l.States()
	l.must(err)
	return states
}

// everyLink lists the links of all machines with their indices and addresses,
// but for those that the kernel gives them when it has time.
func (l *lab) everyLink() map[string][]string {
	l.t.Helper()
	all := map[string][]string{}
	for name := range l.machines {
		l.inside(name, func() {
			links, err := net.Interfaces()
			l.must(err)
			for _, link := range links {
				addresses, err := link.Addrs()
				l.must(err)
				addresses = slices.DeleteFunc(addresses, func(a net.Addr) bool { return a.(*net.IPNet).IP.IsLinkLocalUnicast() })
				all[name] = append(all[name], fmt.Sprint(link.Index, link.Name, link.HardwareAddr, link.Flags&net.FlagUp, addresses))
			}
		})
	}
	return all
}

func addrs(list []netip.Prefix) []netip.Addr {
	var all []netip.Addr
	for _, p := range list {
		all = append(all, p.Addr())
	}
	return all
}

// pods are the first addresses of a node's pod networks.
func pods(n plan.Node) []netip.Addr {
	all := addrs(n.Pods)
	for i, a := range all {
		all[i] = a.Next()
	}
	return all
}

func TestSysctlsOfOneFamilyLeaveTheOtherAlone(t *testing.T) {
	t.Parallel()
	for _, o := range []plan.Options{{Nodes: 1, IPv4: true}, {Nodes: 1, IPv6: true}} {
		c, err := plan.New(o)
		if err != nil {
			t.Fatal(err)
		}
		other := "net/ipv4/"
		if o.IPv4 {
			other = "net/ipv6/"
		}
		for name := range Sysctls(c) {
			if strings.HasPrefix(name, other) {
				t.Errorf("%s is set for %+v", name, o)
			}
		}
	}
}

var prefixes = cmpopts.EquateComparable(netip.Prefix{})
