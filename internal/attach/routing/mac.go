package routing

import (
	"encoding/binary"
	"hash/fnv"
	"net"
	"net/netip"
)

// locallyAdministered is the first byte of unicast MAC addresses that no maker gave out.
const locallyAdministered = 0x02

// railOfDefault is in the MAC address of the default network's interface in
// place of a rail's number.
const railOfDefault = 0xff

// prefixedMAC is a MAC address for podMACPrefix: its two bytes, then the four of
// an IPv4 address or the last four of an IPv6 one.
func prefixedMAC(prefix []byte, addr netip.Addr) net.HardwareAddr {
	mac := make(net.HardwareAddr, 6)
	copy(mac[:2], prefix)
	ip := addr.Unmap().AsSlice()
	copy(mac[2:], ip[max(0, len(ip)-4):])
	return mac
}

// derivedMAC is the MAC address of a rail's interface where none is asked for:
// 02, the rail, then the four bytes of an IPv4 address, or the FNV-1a hash of an
// IPv6 one. A pod that comes back with its address comes back with its MAC
// address, so that no neighbour holds an old one, and two pods on a rail
// have two: as to IPv4 for certain, as to IPv6 as surely as 32 bits say.
func derivedMAC(rail int, addr netip.Addr) net.HardwareAddr {
	mac := net.HardwareAddr{locallyAdministered, byte(rail), 0, 0, 0, 0}
	if addr = addr.Unmap(); addr.Is4() {
		copy(mac[2:], addr.AsSlice())
		return mac
	}
	sum := fnv.New32a()
	_, _ = sum.Write(addr.AsSlice()) // a hash never fails
	binary.BigEndian.PutUint32(mac[2:], sum.Sum32())
	return mac
}

// vethMAC is the MAC address of one end of a container's pair. Both ends are
// each other's permanent neighbours, so that they must be known before.
func vethMAC(containerID, end string) net.HardwareAddr {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(containerID + "/" + end))
	mac := net.HardwareAddr(binary.BigEndian.AppendUint64(nil, sum.Sum64())[:6])
	mac[0] = locallyAdministered
	return mac
}
