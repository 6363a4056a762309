package probe

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
)

// heardOf sends frames from the far end of a rail, the last of which must come
// through, and returns what comes through before it.
func heardOf(t *testing.T, l *lab, addrs []netip.Addr, frames ...[]byte) []sighting {
	t.Helper()
	w, err := openWire(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.conn.Close() }()
	link, err := net.InterfaceByName("rail1")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.hear(link.Index, unix.ETH_P_ALL, addrs); err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		l.send(1, f)
	}
	last, ok := decode(frames[len(frames)-1])
	if !ok {
		t.Fatal("the last frame says nothing")
	}
	var got []sighting
	buf := make([]byte, frameBuffer)
	for {
		n, _, err := w.read(buf)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := decode(buf[:n])
		if !ok {
			t.Errorf("%x came through", buf[:n])
		}
		if s == last {
			return got
		}
		got = append(got, s)
	}
}

// tagged returns a frame in a VLAN.
func tagged(frame []byte, vlan byte) []byte {
	b := append([]byte(nil), frame[:2*macSize]...)
	b = append(b, 0x81, 0, 0, vlan)
	return append(b, frame[2*macSize:]...)
}

func TestFilter(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		l := newLab(t, false)
		l.cable("rail1", 1)
		v4, v6, last := netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("fd01::2"), netip.MustParseAddr("10.1.0.3")
		no4, no6 := netip.MustParseAddr("10.1.0.4"), netip.MustParseAddr("fd01::4")
		end := announceFrame(foreign, last)
		dropped := [][]byte{
			announceFrame(foreign, no4), probeFrame(foreign, no4), arpFrame(foreign, no4, v4),
			announceFrame(foreign, no6), probeFrame(foreign, no6),
			change1(probeFrame(foreign, v6), ipv6Source, 0xfe), // who resolves the address
			change1(announceFrame(foreign, v6), icmpOffset, 134),
			change1(announceFrame(foreign, v6), ethernetSize+6, unix.IPPROTO_UDP),
			change1(announceFrame(foreign, v4), 13, 0),
			change1(announceFrame(foreign, v4), 0, 0x02), // to another host
			tagged(announceFrame(foreign, v4), 5),
		}
		passed := [][]byte{
			announceFrame(foreign, v4), probeFrame(foreign, v4), arpFrame(foreign, v4, no4),
			announceFrame(foreign, v6), probeFrame(foreign, v6), tagged(announceFrame(foreign, v4), 0), end,
		}
		addrs := []netip.Addr{v4, v6, last}
		if got := heardOf(t, l, addrs, append(dropped, end)...); len(got) > 0 {
			t.Errorf("%v came through", got)
		}
		if got := heardOf(t, l, addrs, passed...); len(got) != len(passed)-1 {
			t.Errorf("%d came through, want %d: %v", len(got), len(passed)-1, got)
		}
		// As many as there can be, and more.
		for n := range 2 * maxFiltered {
			addrs = append(addrs, netip.AddrFrom4([4]byte{10, 9, byte(n >> 8), byte(n)}))
		}
		if got := heardOf(t, l, addrs[:maxFiltered], append(dropped, end)...); len(got) > 0 {
			t.Errorf("%v came through", got)
		}
		if got := heardOf(t, l, addrs, append(dropped[:5], end)...); len(got) != 5 {
			t.Errorf("%d came through a filter without addresses, want 5: %v", len(got), got)
		}
	})
}
