package ethtool

import (
	"encoding/binary"
	"iter"
	"math/bits"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A bitset is a compact ETHTOOL_A_BITSET: 32-bit words in native order, the
// lowest bit first. Bits beyond what this package knows are kept.
type bitset struct {
	value []byte
	mask  []byte // nil for a plain list
}

func decodeBitset(ad *netlink.AttributeDecoder) bitset {
	var s bitset
	nested(ad, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.ETHTOOL_A_BITSET_VALUE:
			s.value = ad.Bytes()
		case unix.ETHTOOL_A_BITSET_MASK:
			s.mask = ad.Bytes()
		}
	})
	return s
}

// setBits yields the numbers of the bits that are set, in rising order. Bytes
// after the last whole word are ignored.
func setBits(words []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for base := 0; len(words) >= 4; base, words = base+32, words[4:] {
			for w := binary.NativeEndian.Uint32(words); w != 0; w &= w - 1 {
				if !yield(base + bits.TrailingZeros32(w)) {
					return
				}
			}
		}
	}
}

// maxMegabits returns the speed of the fastest link mode in a set, or 0 when
// none of them is a speed that is known.
func maxMegabits(modes []byte) int {
	fastest := 0
	for mode := range setBits(modes) {
		if mode < len(linkModeMegabits) {
			fastest = max(fastest, linkModeMegabits[mode])
		}
	}
	return fastest
}
