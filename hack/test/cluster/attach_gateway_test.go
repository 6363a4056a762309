package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/hack/cluster/plan"
)

// slowGateway answers requests for a rail's gateway in the place of the fabric's
// kernel: only the second of an interface and those behind it, and of interfaces
// that asked before it answers, none.
type slowGateway struct {
	address netip.Addr
	mac     net.HardwareAddr
	socket  *os.File // on the switch of the rail

	mu      sync.Mutex
	answers bool
	asked   map[[6]byte]int // requests by the address of the interface, which is another in each attempt
	early   []arpHost       // who asked before it answers, in that order
}

// slowGateway is that of a rail as long as the test runs.
func (f *faultyRail) slowGateway(t *testing.T, rail plan.Rail) *slowGateway {
	t.Helper()
	g := &slowGateway{address: rail.Gateways[0].Addr(), asked: map[[6]byte]int{}}
	var err error
	if g.mac, err = net.ParseMAC(rail.MAC); err != nil {
		t.Fatal(err)
	}
	fabric, err := f.NetNS(plan.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	defer fabric.Close()
	if err := fabric.Do(func() (err error) { g.socket, err = arpSocket(rail.Bridge); return err }); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.serve() }()
	setting := "/proc/sys/net/ipv4/conf/" + rail.Bridge + "/arp_ignore"
	t.Cleanup(func() {
		if out, err := f.TryOnNode(context.Background(), plan.Fabric, "sh", "-c", "echo 0 > "+setting); err != nil {
			t.Errorf("%s%v", out, err)
		}
		_ = g.socket.Close()
		if err := <-ended; !errors.Is(err, os.ErrClosed) {
			t.Errorf("gateway of %s: %v", rail.Bridge, err)
		}
	})
	f.OnNode(t, plan.Fabric, "sh", "-c", "echo 8 > "+setting) // the kernel answers nobody
	return g
}

// arpSocket takes and sends ARP's frames on a link.
func arpSocket(name string) (*os.File, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	const protocol = unix.ETH_P_ARP&0xff<<8 | unix.ETH_P_ARP>>8 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "ARP on "+name), nil
}

// answer has the gateway answer from now on. Whoever asked first, and has given it
// up, gets an answer too.
func (g *slowGateway) answer(t *testing.T) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = true
	if len(g.early) == 0 {
		t.Fatal("nobody has asked the gateway")
	}
	if err := g.send(g.early[0]); err != nil {
		t.Fatal(err)
	}
}

// requests are how often an interface has asked.
func (g *slowGateway) requests(mac net.HardwareAddr) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[[6]byte(mac)]
}

// serve answers until the socket is closed.
func (g *slowGateway) serve() error {
	frame := make([]byte, 1<<11)
	for {
		n, err := g.socket.Read(frame)
		if err != nil {
			return err
		}
		if host, asks := g.request(frame[:n]); asks && g.isAnswered(host) {
			if err := g.send(host); err != nil {
				return err
			}
		}
	}
}

// isAnswered counts a request, and tells whether it is answered.
func (g *slowGateway) isAnswered(host arpHost) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[host.mac]++
	if !g.answers {
		g.early = append(g.early, host)
	}
	return g.asked[host.mac] > 1 && !slices.ContainsFunc(g.early, func(h arpHost) bool { return h.mac == host.mac })
}

// arpHost is who asks, as its request says.
type arpHost struct {
	mac     [6]byte
	address [4]byte
}

// Where ARP for IPv4 on Ethernet has what.
const (
	arpStart  = 14 // behind Ethernet's header
	arpLength = 28
)

// request reads who asks for the gateway.
func (g *slowGateway) request(frame []byte) (from arpHost, asks bool) {
	if len(frame) < arpStart+arpLength {
		return from, false
	}
	arp := frame[arpStart : arpStart+arpLength]
	want := []byte{0, 1, 8, 0, 6, 4, 0, 1}
	if !bytes.Equal(arp[:8], want) || !bytes.Equal(arp[24:28], g.address.AsSlice()) {
		return from, false
	}
	return arpHost{[6]byte(arp[8:14]), [4]byte(arp[14:18])}, true
}

// send says where the gateway is.
func (g *slowGateway) send(to arpHost) error {
	frame := make([]byte, 0, arpStart+arpLength)
	frame = append(append(frame, to.mac[:]...), g.mac...)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_ARP)
	frame = append(frame, 0, 1, 8, 0, 6, 4, 0, 2)
	frame = append(append(frame, g.mac...), g.address.AsSlice()...)
	frame = append(append(frame, to.mac[:]...), to.address[:]...)
	_, err := g.socket.Write(frame)
	return err
}
