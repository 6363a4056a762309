package policy

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// lowest takes the n lowest addresses of a set, and fewer only if it has fewer.
// It costs the set's ranges, whatever their size.
func lowest(set *netipx.IPSet, n int64) []netipx.IPRange {
	var taken []netipx.IPRange
	for _, r := range set.Ranges() {
		if n <= 0 {
			break
		}
		if size := rangeSize(r); size >= n {
			r = netipx.IPRangeFrom(r.From(), advance(r.From(), n-1))
			n = 0
		} else {
			n -= size
		}
		taken = append(taken, r)
	}
	return taken
}

// highest takes the n highest addresses of a set.
func highest(set *netipx.IPSet, n int64) []netipx.IPRange {
	var taken []netipx.IPRange
	for _, r := range slices.Backward(set.Ranges()) {
		if n <= 0 {
			break
		}
		if size := rangeSize(r); size >= n {
			r = netipx.IPRangeFrom(advance(r.To(), 1-n), r.To())
			n = 0
		} else {
			n -= size
		}
		taken = append(taken, r)
	}
	return taken
}

// advance is the address that comes by places later, or earlier if by is
// negative. Callers keep within the family.
func advance(addr netip.Addr, by int64) netip.Addr {
	if addr.Is4() {
		raw := addr.As4()
		var moved [4]byte
		binary.BigEndian.PutUint32(moved[:], binary.BigEndian.Uint32(raw[:])+uint32(by))
		return netip.AddrFrom4(moved)
	}
	raw := addr.As16()
	low, carry := bits.Add64(binary.BigEndian.Uint64(raw[8:]), uint64(by), 0)
	high := binary.BigEndian.Uint64(raw[:8]) + carry
	if by < 0 {
		high--
	}
	var moved [16]byte
	binary.BigEndian.PutUint64(moved[:8], high)
	binary.BigEndian.PutUint64(moved[8:], low)
	return netip.AddrFrom16(moved)
}

// built is what a builder made of parsed ranges has, which is always something.
func built(build *netipx.IPSetBuilder) *netipx.IPSet {
	set, err := build.IPSet()
	if err != nil {
		return &netipx.IPSet{}
	}
	return set
}
