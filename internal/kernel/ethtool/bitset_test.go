package ethtool

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetBits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		words []byte
		want  []int
	}{
		{name: "empty"},
		{name: "none", words: make([]byte, 16)},
		{name: "first and last of a word", words: words(0, 31, 32, 63), want: []int{0, 31, 32, 63}},
		{name: "far", words: words(3, 500), want: []int{3, 500}},
		{name: "half a word", words: []byte{0xff, 0xff}},
		{name: "a word and a half", words: append(words(1), 0xff, 0xff), want: []int{1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, slices.Collect(setBits(tt.words))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMaxMegabits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		modes []int
		want  int
	}{
		{name: "none"},
		{name: "no speeds", modes: []int{6, 7, 13, 14, 50}},
		{name: "1GbE", modes: []int{0, 1, 2, 3, 5, 6, 7}, want: 1000},
		{name: "not in order", modes: []int{31, 86, 99}, want: 400000},
		{name: "800G", modes: []int{97}, want: 800000},
		{name: "last of the table", modes: []int{124}, want: 1600000},
		{name: "newer than the table", modes: []int{36, 125, 1000}, want: 100000},
		{name: "only newer than the table", modes: []int{125}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := maxMegabits(words(tt.modes...)); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// The speed of two sets together is the greater of the two, bits newer than
// the table change nothing, and no bit is lost.
func FuzzMaxMegabits(f *testing.F) {
	f.Add(words(31, 86), words(0, 1, 2))
	f.Add(words(1000), []byte{1, 2, 3})
	f.Add([]byte(nil), words(49, 50, 51))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		union := merge(a[:len(a)&^3], b[:len(b)&^3])
		want := max(maxMegabits(a), maxMegabits(b))
		if got := maxMegabits(union); got != want {
			t.Errorf("union of %x and %x is %d, want %d", a, b, got, want)
		}
		known := (len(linkModeMegabits) + 31) / 32 * 4
		newer := slices.Concat(make([]byte, known), bytes.Repeat([]byte{0xff}, 16))
		if got := maxMegabits(merge(union, newer)); got != want {
			t.Errorf("%x with newer bits is %d, want %d", union, got, want)
		}
		bits := slices.Collect(setBits(union))
		if !slices.IsSorted(bits) || !bytes.Equal(merge(words(bits...), make([]byte, len(union))), union) {
			t.Errorf("%x has bits %v", union, bits)
		}
	})
}

// merge returns the bits that are in a or b.
func merge(a, b []byte) []byte {
	union := make([]byte, max(len(a), len(b)))
	copy(union, a)
	for i := range b {
		union[i] |= b[i]
	}
	return union
}
