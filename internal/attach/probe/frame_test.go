package probe

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// change returns a copy of a frame with one byte changed.
func change1(frame []byte, offset int, value byte) []byte {
	b := append([]byte(nil), frame...)
	b[offset] = value
	return b
}

func TestDecode(t *testing.T) {
	t.Parallel()
	v4, v6 := netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("fd01::2")
	other := netip.MustParseAddr("10.1.0.9")
	arp, nd := announceFrame(foreign, v4), announceFrame(foreign, v6)
	ask := probeFrame(foreign, v6)
	claim := func(a netip.Addr) sighting { return sighting{addr: a, mac: foreign} }
	probe := func(a netip.Addr) sighting { return sighting{addr: a, mac: foreign, probe: true} }
	tests := []struct {
		name  string
		frame []byte
		want  sighting // zero: it says nothing
	}{
		{"nothing", nil, sighting{}},
		{"no protocol", arp[:ethernetSize-1], sighting{}},
		{"other protocol", change1(arp, 13, 0), sighting{}},
		{"announcement", arp, claim(v4)},
		{"request", arpFrame(foreign, v4, other), claim(v4)},
		{"reply", arpAnswer(foreign, v4, foreign), claim(v4)},
		{"probe", probeFrame(foreign, v4), probe(v4)},
		{"reply without a sender", change1(probeFrame(foreign, v4), ethernetSize+7, arpReply), sighting{}},
		{"reverse ARP", change1(arp, ethernetSize+7, 3), sighting{}},
		{"short ARP", arp[:len(arp)-1], sighting{}},
		{"padded ARP", append(arp, make([]byte, 18)...), claim(v4)},
		{"ARP of other hardware", change1(arp, ethernetSize+1, 6), sighting{}},
		{"ARP of another protocol", change1(arp, ethernetSize+2, 0x86), sighting{}},
		{"ARP with a long MAC", change1(arp, ethernetSize+4, 20), sighting{}},
		{"ARP with a long address", change1(arp, ethernetSize+5, 16), sighting{}},
		{"ARP of a multicast MAC", change1(arp, arpSenderMAC, 1), sighting{}},
		{"ARP without a MAC", arpFrame([macSize]byte{}, v4, v4), sighting{}},
		{"ARP of a group", announceFrame(foreign, netip.MustParseAddr("224.0.0.1")), sighting{}},
		{"probe for nothing", probeFrame(foreign, netip.IPv4Unspecified()), sighting{}},

		{"advertisement", nd, claim(v6)},
		{"MAC from its option", change1(nd, macSize+5, 9), claim(v6)},
		{"no option", nd[:icmpOffset+ndSize], claim(v6)},
		{"half an option", nd[:len(nd)-1], claim(v6)},
		{"option of no length", change1(nd, icmpOffset+ndSize+1, 0), claim(v6)},
		{"option of another kind", change1(nd, icmpOffset+ndSize, 1), claim(v6)},
		{"solicitation without a source", ask, probe(v6)},
		{"solicitation with a source", change1(ask, ipv6Source, 0xfe), sighting{}},
		{"short ND", ask[:len(ask)-1], sighting{}},
		{"over a router", change1(nd, ethernetSize+7, 254), sighting{}},
		{"not ICMPv6", change1(nd, ethernetSize+6, unix.IPPROTO_UDP), sighting{}},
		{"with a code", change1(nd, icmpOffset+1, 1), sighting{}},
		{"other ICMPv6", change1(nd, icmpOffset, 134), sighting{}},
		{"version 4", change1(nd, ethernetSize, 4<<4), sighting{}},
		{"of a group", change1(nd, targetOffset, 0xff), sighting{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := decode(tt.frame)
			if got != tt.want && ok || ok != tt.want.addr.IsValid() {
				t.Errorf("%+v, %t, want %+v", got, ok, tt.want)
			}
		})
	}
}

// TestChecksum checks it as a receiver does: the sum over all is none.
func TestChecksum(t *testing.T) {
	t.Parallel()
	for _, f := range [][]byte{probeFrame(foreign, netip.MustParseAddr("fd01::2")), announceFrame(foreign, netip.MustParseAddr("2001:db8::ffff"))} {
		if got := checksum(f[ipv6Source:], len(f)-icmpOffset); got != 0 {
			t.Errorf("%#x, want 0", got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, a := range []string{"10.1.0.2", "fd01::2"} {
		f.Add(probeFrame(foreign, netip.MustParseAddr(a)))
		f.Add(announceFrame(foreign, netip.MustParseAddr(a)))
	}
	f.Add(arpAnswer(foreign, netip.MustParseAddr("10.1.0.2"), foreign))
	f.Fuzz(func(t *testing.T, frame []byte) {
		s, ok := decode(frame)
		if !ok {
			return
		}
		if !isHost(s.addr) || s.mac[0]&1 != 0 || s.mac == [macSize]byte{} {
			t.Fatalf("%+v is nobody's", s)
		}
		// Said again in our words, it says the same.
		again := announceFrame(s.mac, s.addr)
		if s.probe {
			again = probeFrame(s.mac, s.addr)
		}
		if got, ok := decode(again); !ok || got != s {
			t.Fatalf("%+v, %t, want %+v", got, ok, s)
		}
	})
}
