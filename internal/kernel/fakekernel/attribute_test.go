package fakekernel

import (
	"bytes"
	"slices"
	"testing"

	"github.com/mdlayher/netlink"
)

// FuzzFind holds what reads requests against the decoder of package netlink,
// which goes on where the kernel stops: at an attribute that is too short.
func FuzzFind(f *testing.F) {
	f.Add([]byte{5, 0, 1, 0, 9, 0, 0, 0, 8, 0, 1, 0x80, 1, 2, 3, 4}, uint16(1))
	f.Add([]byte{8, 0, 2, 0, 1, 2, 3, 4, 9, 0}, uint16(2))
	f.Add([]byte{3, 0, 1, 0}, uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, typ uint16) {
		typ &= 0x3fff
		got, at := find(b, typ), places(b, typ)
		if (got == nil) != (len(at) == 0) || got != nil && !bytes.HasPrefix(b[at[0]:], got) {
			t.Fatalf("found % x, and places %v", got, at)
		}
		ad, err := netlink.NewAttributeDecoder(b)
		if err != nil || got == nil {
			return
		}
		for ad.Next() {
			if ad.Type() == typ {
				if !bytes.Equal(got, ad.Bytes()) {
					t.Errorf("found % x, want % x", got, ad.Bytes())
				}
				return
			}
		}
		t.Errorf("found % x, which the decoder does not", got)
	})
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	b := encode(func(ae *netlink.AttributeEncoder) {
		ae.Uint32(7, 1)
		for i := range uint16(2) {
			nest(ae, 5, func(ae *netlink.AttributeEncoder) {
				ae.String(1, "abcd") // with its NUL and padding, 12 bytes
				ae.Uint64(2+i, 0)
			})
		}
	})
	for _, tt := range []struct {
		path []uint16
		want []int
	}{
		{[]uint16{7}, []int{4}},
		{[]uint16{5, 1}, []int{16, 44}},
		{[]uint16{5, 2}, []int{28}},
		{[]uint16{5, anyType}, []int{16, 28, 44, 56}},
		{[]uint16{7, 9}, nil},
	} {
		if got := places(b, tt.path...); !slices.Equal(got, tt.want) {
			t.Errorf("places of %v: %v, want %v", tt.path, got, tt.want)
		}
	}
}
