package probe

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Offsets in an Ethernet frame, and sizes.
const (
	macSize       = 6
	ethernetSize  = 14
	arpSize       = 28 // of IPv4 over Ethernet
	ipv6Size      = 40
	ndSize        = 24 // neighbour solicitation and advertisement, without options
	ipv6Source    = ethernetSize + 8
	icmpOffset    = ethernetSize + ipv6Size
	targetOffset  = icmpOffset + 8
	arpSenderMAC  = ethernetSize + 8
	arpSenderIP   = ethernetSize + 14
	arpTargetIP   = ethernetSize + 24
	ndHopLimit    = 255 // RFC 4861: with less, it came over a router
	ndSolicit     = 135
	ndAdvertise   = 136
	ndOverride    = 1 << 5 // of an advertisement's flags
	optionSource  = 1      // source link-layer address
	optionTarget  = 2      // target link-layer address
	arpRequest    = 1
	arpReply      = 2
	arpHardware   = 1 // Ethernet
	optionMACSize = 8 // an option with an Ethernet address
)

// sighting is what a frame says about who has, or wants, an address.
type sighting struct {
	addr  netip.Addr
	mac   [macSize]byte
	probe bool // he asks whether he can have it
}

// kind returns how an address was seen.
func (s sighting) kind() Kind {
	if s.probe {
		return KindProbe
	}
	return KindClaim
}

func (s sighting) hardware() net.HardwareAddr { return net.HardwareAddr(s.mac[:]) }

// decode returns what an Ethernet frame says, and false if it says nothing
// about who has an address.
func decode(frame []byte) (sighting, bool) {
	if len(frame) < ethernetSize {
		return sighting{}, false
	}
	var s sighting
	var ok bool
	switch binary.BigEndian.Uint16(frame[2*macSize:]) {
	case unix.ETH_P_ARP:
		s, ok = decodeARP(frame[ethernetSize:])
	case unix.ETH_P_IPV6:
		s, ok = decodeND(frame)
	}
	// Nobody can have an address with such a MAC.
	if s.mac == [macSize]byte{} || s.mac[0]&1 != 0 {
		return sighting{}, false
	}
	return s, ok
}

// decodeARP reads an ARP packet as RFC 5227 2.1.1 does: any packet, request or
// reply, claims its sender's address, and a request without one is a probe.
func decodeARP(b []byte) (sighting, bool) {
	switch {
	case len(b) < arpSize,
		binary.BigEndian.Uint16(b) != arpHardware,
		binary.BigEndian.Uint16(b[2:]) != unix.ETH_P_IP,
		b[4] != macSize, b[5] != net.IPv4len:
		return sighting{}, false
	}
	op := binary.BigEndian.Uint16(b[6:])
	s := sighting{addr: netip.AddrFrom4([4]byte(b[14:18])), mac: [macSize]byte(b[8:14])}
	if s.addr.IsUnspecified() {
		s.addr, s.probe = netip.AddrFrom4([4]byte(b[24:28])), true
	}
	known := op == arpRequest || op == arpReply && !s.probe
	return s, known && isHost(s.addr)
}

// decodeND reads neighbour discovery as RFC 4862 5.4 does: an advertisement
// claims its target, and a solicitation without a source is a probe. The
// checksum is not looked at: the kernel may have left it to a NIC that this
// frame has not come to.
func decodeND(frame []byte) (sighting, bool) {
	if len(frame) < icmpOffset+ndSize {
		return sighting{}, false
	}
	ip, icmp := frame[ethernetSize:icmpOffset], frame[icmpOffset:]
	if ip[0]>>4 != 6 || ip[6] != unix.IPPROTO_ICMPV6 || ip[7] != ndHopLimit || icmp[1] != 0 {
		return sighting{}, false
	}
	s := sighting{addr: netip.AddrFrom16([16]byte(icmp[8:24])), mac: [macSize]byte(frame[macSize:])}
	switch icmp[0] {
	case ndSolicit:
		s.probe = true
		return s, netip.AddrFrom16([16]byte(ip[8:24])).IsUnspecified() && isHost(s.addr)
	case ndAdvertise:
		if mac, ok := targetMAC(icmp[ndSize:]); ok {
			s.mac = mac
		}
		return s, isHost(s.addr)
	}
	return sighting{}, false
}

// targetMAC returns the address in the options of an advertisement. Without
// one, it is the sender's.
func targetMAC(options []byte) (mac [macSize]byte, ok bool) {
	for len(options) >= optionMACSize {
		size := int(options[1]) * 8
		if size == 0 || size > len(options) {
			return mac, false
		}
		if options[0] == optionTarget && size == optionMACSize {
			return [macSize]byte(options[2:optionMACSize]), true
		}
		options = options[size:]
	}
	return mac, false
}

// isHost reports whether an address can be a host's, of IPv4 or of IPv6.
func isHost(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.Is4In6()
}
