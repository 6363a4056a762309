package probe

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// probeFrame returns the frame that asks, without saying that we have it,
// whether anybody has an address: RFC 5227 2.1.1, RFC 4862 5.4.2.
func probeFrame(mac [macSize]byte, addr netip.Addr) []byte {
	if addr.Is4() {
		return arpFrame(mac, netip.IPv4Unspecified(), addr)
	}
	group := solicitedNode(addr)
	icmp := make([]byte, ndSize)
	icmp[0] = ndSolicit
	copy(icmp[8:], addr.AsSlice())
	return ndFrame(mac, netip.IPv6Unspecified(), group, icmp)
}

// announceFrame returns the frame that tells everybody that we have an
// address: RFC 5227 2.3, RFC 4861 7.2.6.
func announceFrame(mac [macSize]byte, addr netip.Addr) []byte {
	if addr.Is4() {
		return arpFrame(mac, addr, addr)
	}
	icmp := make([]byte, ndSize, ndSize+optionMACSize)
	icmp[0], icmp[4] = ndAdvertise, ndOverride
	copy(icmp[8:], addr.AsSlice())
	icmp = append(icmp, optionTarget, 1)
	icmp = append(icmp, mac[:]...)
	return ndFrame(mac, addr, netip.IPv6LinkLocalAllNodes(), icmp)
}

// requestFrame returns the frame that asks whoever has an address for his MAC
// address, as the host that has another: RFC 826, RFC 4861 7.2.2.
func requestFrame(mac [macSize]byte, from, addr netip.Addr) []byte {
	if addr.Is4() {
		return arpFrame(mac, from, addr)
	}
	icmp := make([]byte, ndSize, ndSize+optionMACSize)
	icmp[0] = ndSolicit
	copy(icmp[8:], addr.AsSlice())
	icmp = append(icmp, optionSource, 1)
	icmp = append(icmp, mac[:]...)
	return ndFrame(mac, from, solicitedNode(addr), icmp)
}

// arpFrame returns a request to everybody.
func arpFrame(mac [macSize]byte, sender, target netip.Addr) []byte {
	b := make([]byte, 0, ethernetSize+arpSize)
	b = append(b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	b = append(b, mac[:]...)
	for _, word := range []uint16{unix.ETH_P_ARP, arpHardware, unix.ETH_P_IP, macSize<<8 | 4, arpRequest} {
		b = binary.BigEndian.AppendUint16(b, word)
	}
	b = append(b, mac[:]...)
	b = append(b, sender.AsSlice()...)
	b = append(b, make([]byte, macSize)...)
	return append(b, target.AsSlice()...)
}

// ndFrame returns an ICMPv6 message to a multicast group, with its checksum.
func ndFrame(mac [macSize]byte, source, group netip.Addr, icmp []byte) []byte {
	to, toMAC := group.As16(), groupMAC(group)
	b := make([]byte, 0, icmpOffset+len(icmp))
	b = append(b, toMAC[:]...)
	b = append(b, mac[:]...)
	b = binary.BigEndian.AppendUint16(b, unix.ETH_P_IPV6)
	b = append(b, 6<<4, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(icmp)))
	b = append(b, unix.IPPROTO_ICMPV6, ndHopLimit)
	b = append(b, source.AsSlice()...)
	b = append(b, to[:]...)
	b = append(b, icmp...)
	binary.BigEndian.PutUint16(b[icmpOffset+2:], checksum(b[ipv6Source:], len(icmp)))
	return b
}

// groupMAC returns the address of a multicast group of IPv6: RFC 2464 7.
func groupMAC(group netip.Addr) [macSize]byte {
	a := group.As16()
	return [macSize]byte{0x33, 0x33, a[12], a[13], a[14], a[15]}
}

// checksum is that of an ICMPv6 message of a size behind its addresses, whose
// own checksum is zero (RFC 4443 2.3).
func checksum(b []byte, size int) uint16 {
	sum := uint32(size) + unix.IPPROTO_ICMPV6
	for i, c := range b {
		sum += uint32(c) << (8 * (1 - i&1))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// solicitedNode returns the group that whoever has an address is in.
func solicitedNode(addr netip.Addr) netip.Addr {
	a := addr.As16()
	return netip.AddrFrom16([16]byte{0xff, 0x02, 11: 1, 12: 0xff, 13: a[13], 14: a[14], 15: a[15]})
}
