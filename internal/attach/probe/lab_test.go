package probe

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// foreign is a host's MAC that no interface of the tests has.
var foreign = [macSize]byte{0x02, 0xee, 0xee, 0xee, 0xee, 0x01}

// lab is a node, which is the test's own namespace, a pod, and what the node's
// rails lead to.
type lab struct {
	tb       testing.TB
	pod, far *os.File
	prober   Prober
}

// newLab makes one without rails. No link of it is asked for duplicates of its
// link-local address unless dad says so.
func newLab(tb testing.TB, dad bool) *lab {
	tb.Helper()
	l := &lab{tb: tb, pod: kerneltest.NewNetNS(tb), far: kerneltest.NewNetNS(tb)}
	tb.Cleanup(l.prober.Wait)
	for _, ns := range []*os.File{l.pod, l.far} {
		l.in(ns, func() {
			kerneltest.SetUp(tb, "lo")
			if !dad || ns == l.far {
				l.sysctl("net/ipv6/conf/default/accept_dad", "0")
			}
		})
	}
	return l
}

// in runs fn in a namespace.
func (l *lab) in(file *os.File, fn func()) {
	l.tb.Helper()
	ns, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		l.tb.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if err := ns.Do(func() error { fn(); return nil }); err != nil {
		l.tb.Fatal(err)
	}
}

func (l *lab) sysctl(name, value string) {
	l.tb.Helper()
	if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
		l.tb.Fatal(err)
	}
}

// rail makes the pod's net<n> on the node's rail<n>, which leads to far<n>, and
// returns it as a target with addresses.
func (l *lab) rail(n int, addresses ...string) Target {
	l.tb.Helper()
	rail := fmt.Sprintf("rail%d", n)
	l.cable(rail, n)
	return l.macvlan(n, rail, addresses...)
}

// cable makes a link of the node that leads to far<n>.
func (l *lab) cable(rail string, n int) {
	l.tb.Helper()
	far := fmt.Sprintf("far%d", n)
	kerneltest.AddVeth(l.tb, rail, far)
	kerneltest.MoveLink(l.tb, far, l.far)
	l.in(l.far, func() { kerneltest.SetUp(l.tb, far) })
	kerneltest.SetUp(l.tb, rail)
	awaitLink(l.tb, rail, carries)
	l.in(l.far, func() { awaitLink(l.tb, far, carries) })
}

// carries reports whether the kernel sends what it is given for a link.
func carries(l rtnl.Link) bool { return l.Running && l.OperState == "up" }

// awaitLink waits for a state of a link of the thread's namespace, which the
// kernel brings about in the background.
func awaitLink(tb testing.TB, name string, is func(rtnl.Link) bool) {
	tb.Helper()
	events, err := rtnl.Subscribe(nil, rtnl.Links)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = events.Close() }()
	client, err := rtnl.Dial(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	link, err := net.InterfaceByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if l, err := client.Link(link.Index); err != nil {
			tb.Fatal(err)
		} else if is(l) {
			return
		}
		if _, err := events.Receive(); err != nil {
			tb.Fatal(err)
		}
	}
}

// macvlan makes the pod's net<n> on a link of the node.
func (l *lab) macvlan(n int, rail string, addresses ...string) Target {
	l.tb.Helper()
	kerneltest.AddMacvlan(l.tb, fmt.Sprintf("net%d", n), rail)
	return l.inPod(n, rail, addresses...)
}

// inPod gives the pod the node's net<n>.
func (l *lab) inPod(n int, rail string, addresses ...string) Target {
	l.tb.Helper()
	name := fmt.Sprintf("net%d", n)
	kerneltest.MoveLink(l.tb, name, l.pod)
	t := Target{Interface: name, Rail: n, Parent: rail}
	l.in(l.pod, func() {
		for _, a := range addresses {
			kerneltest.AddAddress(l.tb, name, netip.MustParsePrefix(a))
			t.Addresses = append(t.Addresses, Address{Addr: netip.MustParsePrefix(a).Addr()})
		}
		kerneltest.SetUp(l.tb, name)
		link, err := net.InterfaceByName(name)
		if err != nil {
			l.tb.Fatal(err)
		}
		t.Index, t.MAC = link.Index, link.HardwareAddr
	})
	return t
}

// host gives the far end of a rail an address, and returns its MAC.
func (l *lab) host(n int, address string) net.HardwareAddr {
	l.tb.Helper()
	name := fmt.Sprintf("far%d", n)
	l.in(l.far, func() {
		kerneltest.AddAddress(l.tb, name, netip.MustParsePrefix(address))
		l.awaitGroup(netip.MustParsePrefix(address).Addr())
	})
	return l.farLink(n).HardwareAddr
}

// awaitGroup waits until the thread's namespace can be asked for an address: the
// kernel joins its group in the background, and tells nobody.
func (l *lab) awaitGroup(addr netip.Addr) {
	l.tb.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for addr.Is6() {
		groups, err := os.ReadFile("/proc/thread-self/net/igmp6")
		if err != nil {
			l.tb.Fatal(err)
		}
		if group := solicitedNode(addr).As16(); strings.Contains(string(groups), hex.EncodeToString(group[:])) {
			return
		}
		<-look.C
	}
}

func (l *lab) farLink(n int) (link *net.Interface) {
	l.tb.Helper()
	l.in(l.far, func() {
		var err error
		if link, err = net.InterfaceByName(fmt.Sprintf("far%d", n)); err != nil {
			l.tb.Fatal(err)
		}
	})
	return link
}

// run runs the lab's prober in the pod.
func (l *lab) run(targets ...Target) Report {
	l.tb.Helper()
	r, err := l.prober.Run(l.tb.Context(), int(l.pod.Fd()), targets)
	if err != nil {
		l.tb.Fatal(err)
	}
	return r
}

// send sends a frame from the far end of a rail.
func (l *lab) send(n int, frame []byte) {
	l.tb.Helper()
	w, err := openWire(int(l.far.Fd()))
	if err != nil {
		l.tb.Fatal(err)
	}
	defer func() { _ = w.conn.Close() }()
	if err := w.send(l.farLink(n).Index, frame); err != nil {
		l.tb.Fatal(err)
	}
}

// answer has the far end of a rail answer frames: each that comes in is given
// to reply, and what that returns is sent back. It ends with the test.
func (l *lab) answer(n int, reply func(frame []byte) []byte) {
	l.tb.Helper()
	index := l.farLink(n).Index
	conn, err := socket.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0, "packet", &socket.Config{NetNS: int(l.far.Fd())})
	if err != nil {
		l.tb.Fatal(err)
	}
	if err := conn.Bind(&unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		l.tb.Fatal(err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		l.tb.Fatal(err)
	}
	w := &wire{conn: conn, raw: raw}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 2048)
		for {
			n, from, err := w.read(buf)
			if err != nil {
				return
			}
			if ll, ok := from.(*unix.SockaddrLinklayer); !ok || ll.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			if frame := reply(buf[:n]); frame != nil {
				_ = w.send(index, frame)
			}
		}
	}()
	l.tb.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
}

// awaitFrame waits until there is something to read.
func awaitFrame(tb testing.TB, w *wire) {
	tb.Helper()
	if err := w.raw.Control(func(fd uintptr) {
		for {
			ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if ready > 0 || !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}); err != nil {
		tb.Fatal(err)
	}
}

// arpAnswer returns a reply in which mac says that it has an address.
func arpAnswer(mac [macSize]byte, addr netip.Addr, to [macSize]byte) []byte {
	b := arpFrame(mac, addr, netip.IPv4Unspecified())
	copy(b, to[:])
	b[ethernetSize+7] = arpReply
	copy(b[ethernetSize+18:], to[:])
	return b
}

// isRequestFor reports whether a frame is an ARP request for an address.
func isRequestFor(frame []byte, addr netip.Addr) bool {
	return len(frame) >= ethernetSize+arpSize && frame[12] == 0x08 && frame[13] == 0x06 &&
		frame[ethernetSize+7] == arpRequest && netip.AddrFrom4([4]byte(frame[arpTargetIP:])) == addr
}
