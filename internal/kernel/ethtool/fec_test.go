package ethtool

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"
	"golang.org/x/sys/unix"
)

// fecModes encodes a list of modes as FEC_GET answers it, without a mask.
func fecModes(modes ...int) []byte {
	b := words(modes...)
	return attribute(netlink.Nested|2, attribute(1), u32(2, uint32(8*len(b))), attribute(4, b))
}

func TestFEC(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		attrs []byte
		want  FEC
	}{
		{name: "nothing", attrs: slices.Concat(fecModes(), u8(3, 0))},
		{name: "automatic", attrs: slices.Concat(fecModes(), u8(3, 1), u32(4, 50)), want: FEC{Auto: true, Active: "rs"}},
		{name: "link down", attrs: slices.Concat(fecModes(50), u8(3, 0)), want: FEC{Modes: []string{"rs"}}},
		{
			name: "all modes", attrs: slices.Concat(fecModes(49, 50, 51, 74), u8(3, 0), u32(4, 74)),
			want: FEC{Active: "llrs", Modes: []string{"off", "rs", "baser", "llrs"}},
		},
		{
			name: "newer than this package", attrs: slices.Concat(fecModes(51, 140), u8(3, 0), u32(4, 140), u64(88, 1)),
			want: FEC{Active: "140", Modes: []string{"baser", "140"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{tb: t, answers: map[command]map[int]answer{fecGet: {3: {attrs: tt.attrs}}}}
			got, err := k.client().FEC(3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFECStats(t *testing.T) {
	t.Parallel()
	counts := func(typ uint16, v ...uint64) []byte {
		var data []byte
		for _, v := range v {
			data = append(data, nlenc.Uint64Bytes(v)...)
		}
		return attribute(typ, data)
	}
	stats := func(attrs ...[]byte) []byte {
		return slices.Concat(fecModes(50), u8(3, 0), u32(4, 50), attribute(netlink.Nested|5, attrs...))
	}
	tests := []struct {
		name  string
		attrs []byte
		want  FECStats
	}{
		{name: "no statistics", attrs: fecModes(50)},
		{name: "driver counts nothing", attrs: stats(counts(2), counts(3), counts(4))},
		{
			name: "totals", attrs: stats(attribute(1), counts(2, 0), counts(3, 1), counts(4)),
			want: FECStats{CorrectedBlocks: new(uint64(0)), UncorrectableBlocks: new(uint64(1))},
		},
		{
			name: "lanes after the total", attrs: stats(counts(2, 10, 1, 2, 3, 4), counts(3, 0, 0, 0, 0, 0), counts(4, 99), counts(5, 1)),
			want: FECStats{CorrectedBlocks: new(uint64(10)), UncorrectableBlocks: new(uint64(0)), CorrectedBits: new(uint64(99))},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{
				tb: t, answers: map[command]map[int]answer{fecGet: {3: {attrs: tt.attrs}}},
				flags: unix.ETHTOOL_FLAG_COMPACT_BITSETS | unix.ETHTOOL_FLAG_STATS,
			}
			got, err := k.client().FECStats(3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// There is a name for each mode that is set, and totals come back.
func FuzzFEC(f *testing.F) {
	f.Add(words(50, 51), uint32(50), nlenc.Uint64Bytes(5), []byte{})
	f.Add(words(130), uint32(130), []byte{1}, fecModes(1))
	f.Add([]byte{1}, uint32(1<<31), []byte(nil), []byte{8, 0, 2, 128, 1, 0, 4, 0})
	f.Fuzz(func(t *testing.T, modes []byte, active uint32, counts, more []byte) {
		if len(modes) > 1024 || len(counts) > 1024 {
			return // more than fits an attribute
		}
		b := slices.Concat(attribute(netlink.Nested|2, attribute(4, modes)), u32(4, active), attribute(netlink.Nested|5, attribute(2, counts)))
		var fec FEC
		var s FECStats
		if err := errors.Join(decode(b, fec.visit), decode(b, s.visit)); err != nil {
			t.Fatal(err)
		}
		if want := len(slices.Collect(setBits(modes))); len(fec.Modes) != want {
			t.Errorf("modes %v, want %d", fec.Modes, want)
		}
		if slices.Contains(fec.Modes, "") || fec.Active == "" {
			t.Errorf("%+v has a mode without a name", fec)
		}
		if got := s.CorrectedBlocks; (got != nil) != (len(counts) >= 8) || got != nil && *got != binary.NativeEndian.Uint64(counts) {
			t.Errorf("corrected %v of %x", got, counts)
		}
		_ = decode(more, fec.visit) // anything at all, without a panic
		_ = decode(more, s.visit)
	})
}
