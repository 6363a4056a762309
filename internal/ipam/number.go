package ipam

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"

	"go4.org/netipx"
)

// uint128 is an address as a number.
type uint128 struct{ hi, lo uint64 }

// number is an address as a number; that of IPv4 is below 2^32.
func number(addr netip.Addr) uint128 {
	if addr.Is4() {
		b := addr.As4()
		return uint128{lo: uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := addr.As16()
	return uint128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// base is the first address of a subnet.
func base(subnet netip.Prefix) uint128 { return number(subnet.Masked().Addr()) }

// addr is the address of a number.
func (n uint128) addr(is4 bool) netip.Addr {
	if is4 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(n.lo&math.MaxUint32))
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], n.hi)
	binary.BigEndian.PutUint64(b[8:], n.lo)
	return netip.AddrFrom16(b)
}

func (n uint128) plus(m uint128) uint128 {
	lo, carry := bits.Add64(n.lo, m.lo, 0)
	hi, _ := bits.Add64(n.hi, m.hi, carry)
	return uint128{hi, lo}
}

func (n uint128) minus(m uint128) uint128 {
	lo, borrow := bits.Sub64(n.lo, m.lo, 0)
	hi, _ := bits.Sub64(n.hi, m.hi, borrow)
	return uint128{hi, lo}
}

func (n uint128) less(m uint128) bool { return n.hi < m.hi || n.hi == m.hi && n.lo < m.lo }

// masked is the number with its lowest bits cleared.
func (n uint128) masked(low uint) uint128 { return uint128{n.hi, n.lo &^ (1<<low - 1)} }

// shifted is the number without its lowest bits.
func (n uint128) shifted(low uint) uint128 {
	return uint128{n.hi >> low, n.lo>>low | n.hi<<(64-low)}
}

// size is how many addresses a range has, at most 2^63-1.
func size(r netipx.IPRange) int64 {
	n := number(r.To()).minus(number(r.From()))
	if n.hi > 0 || n.lo >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n.lo) + 1
}
