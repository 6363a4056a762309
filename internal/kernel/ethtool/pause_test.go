package ethtool

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

func TestPause(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		attrs []byte
		want  Pause
	}{
		{name: "off", attrs: slices.Concat(u8(2, 0), u8(3, 0), u8(4, 0))},
		{name: "rx", attrs: slices.Concat(u8(2, 0), u8(3, 1), u8(4, 0)), want: Pause{Rx: true}},
		{name: "negotiated both", attrs: slices.Concat(u8(2, 1), u8(3, 1), u8(4, 1)), want: Pause{Autoneg: true, Rx: true, Tx: true}},
		{name: "unknown attribute", attrs: slices.Concat(u8(4, 1), u32(77, 1)), want: Pause{Tx: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{tb: t, answers: map[command]map[int]answer{pauseGet: {3: {attrs: tt.attrs}}}}
			got, err := k.client().Pause(3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPauseStats(t *testing.T) {
	t.Parallel()
	config := slices.Concat(u8(2, 0), u8(3, 1), u8(4, 1))
	stats := func(attrs ...[]byte) []byte {
		return append(slices.Clone(config), attribute(netlink.Nested|5, attrs...)...)
	}
	tests := []struct {
		name  string
		attrs []byte
		want  PauseStats
	}{
		{name: "no statistics", attrs: config},
		{name: "driver counts nothing", attrs: stats()},
		{name: "zero is a count", attrs: stats(u64(2, 0), u64(3, 0)), want: PauseStats{TxFrames: new(uint64(0)), RxFrames: new(uint64(0))}},
		{name: "received only", attrs: stats(u64(3, 7)), want: PauseStats{RxFrames: new(uint64(7))}},
		{
			name: "all, padded, and one more", attrs: stats(attribute(1), u64(2, 1<<63), u64(3, 2), u64(4, 3), u64(5, 4)),
			want: PauseStats{TxFrames: new(uint64(1 << 63)), RxFrames: new(uint64(2)), TxStormEvents: new(uint64(3))},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{
				tb: t, answers: map[command]map[int]answer{pauseGet: {3: {attrs: tt.attrs}}},
				flags: unix.ETHTOOL_FLAG_COMPACT_BITSETS | unix.ETHTOOL_FLAG_STATS,
			}
			got, err := k.client().PauseStats(3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPauseMalformed(t *testing.T) {
	t.Parallel()
	k := &fakeKernel{tb: t, answers: map[command]map[int]answer{pauseGet: {3: {attrs: slices.Concat(u8(3, 1), u32(4, 1))}}}}
	got, err := k.client().Pause(3)
	if _, ok := errors.AsType[*Error](err); !ok || got != (Pause{}) {
		t.Errorf("got %+v and error %v, want nothing and an Error", got, err)
	}
}

// Counters that are encoded come back, absent ones stay absent.
func FuzzPause(f *testing.F) {
	f.Add(uint8(1), uint8(0), uint8(1), uint64(0), uint64(1), []byte{})
	f.Add(uint8(2), uint8(255), uint8(0), uint64(1<<63), uint64(0), u32(9, 1))
	f.Add(uint8(2), uint8(255), uint8(0), uint64(1<<63), uint64(0), []byte{5, 0, 5, 0, 1})
	f.Fuzz(func(t *testing.T, autoneg, rx, tx uint8, txFrames, rxFrames uint64, more []byte) {
		b := slices.Concat(u8(2, autoneg), u8(3, rx), u8(4, tx), attribute(netlink.Nested|5, u64(2, txFrames), u64(3, rxFrames)))
		var p Pause
		var s PauseStats
		if err := errors.Join(decode(b, p.visit), decode(b, s.visit)); err != nil {
			t.Fatal(err)
		}
		if want := (Pause{Autoneg: autoneg != 0, Rx: rx != 0, Tx: tx != 0}); p != want {
			t.Errorf("got %+v, want %+v", p, want)
		}
		if diff := cmp.Diff(PauseStats{TxFrames: &txFrames, RxFrames: &rxFrames}, s); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		_ = decode(more, p.visit) // anything at all, without a panic
		_ = decode(more, s.visit)
	})
}
