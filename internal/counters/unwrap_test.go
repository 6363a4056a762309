package counters

import "testing"

// FuzzUnwrap counts in 64 bits what the kernel counts in fewer, and wants the
// two to agree whatever the steps are, as long as none is half of what fits or
// more.
func FuzzUnwrap(f *testing.F) {
	f.Add(uint8(32), uint64(1<<32-3), []byte{1, 1, 1, 200})
	f.Add(uint8(8), uint64(250), []byte{100, 100, 27})
	f.Add(uint8(0), uint64(1<<63), []byte{1})
	f.Fuzz(func(t *testing.T, bits uint8, start uint64, steps []byte) {
		bits %= 33
		mask := ^uint64(0)
		if bits > 0 {
			mask = 1<<bits - 1
		}
		var u unwrap
		truth := start & mask
		if got, _ := u.next(truth, bits); got != truth {
			t.Fatalf("begins with %d, want %d", got, truth)
		}
		for _, step := range steps {
			grown := uint64(step) << (max(bits, 9) - 9)
			if grown > mask/2 {
				continue
			}
			truth += grown
			if got, wentBack := u.next(truth&mask, bits); got != truth || wentBack {
				t.Fatalf("%d bits: %d, want %d", bits, got, truth)
			}
		}
	})
}

func TestUnwrap(t *testing.T) {
	t.Parallel()
	const top = 1<<32 - 1
	tests := []struct {
		name string
		bits uint8
		seen []uint64
		want uint64
	}{
		{"growth", 32, []uint64{5, 9, 9}, 9},
		{"a wrap", 32, []uint64{top - 1, 1}, top + 2},
		{"two wraps", 32, []uint64{3 << 30, 10, 3 << 29, 3 << 30, 10}, 2<<32 + 10},
		{"reset by somebody", 32, []uint64{5000, 3, 10}, 5007},
		{"a dip while a queue pair's counter moves", 32, []uint64{1_000_000, 999_000, 1_000_500}, 1_001_500},
		{"64 bits pass on", 0, []uint64{5000, 3}, 3},
		{"a sum of 32-bit counters that is wider", 32, []uint64{1<<32 + 5, 1<<32 + 7}, 1<<32 + 7},
	}
	for _, test := range tests {
		var u unwrap
		var got uint64
		for _, v := range test.seen {
			got, _ = u.next(v, test.bits)
		}
		if got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	const top, ahead = 1 << 32, 3 << 32
	tests := []struct {
		name             string
		last, now, total uint64 // total is beyond ahead, but where it begins anew
		anew             bool
	}{
		{name: "nothing", last: 500, now: 500, total: 500},
		{name: "growth", last: 500, now: 700, total: 700},
		{name: "growth by more than half", last: 500, now: top - 1, total: top - 1},
		{name: "a wrap", last: top - 10, now: 50, total: top + 50},
		{name: "a driver loaded anew", last: 4_000_000_000, now: 50, anew: true},
		{name: "a driver loaded anew that counts nothing yet", last: top - 1, now: 0, anew: true},
		{name: "a little less", last: 4_000_000_000, now: 3_999_999_000, anew: true},
	}
	for _, test := range tests {
		u := unwrap{last: test.last, total: ahead + test.last, begun: true, resumes: true}
		want := ahead + test.total
		if test.anew {
			want = test.now
		}
		if got, _ := u.next(test.now, 32); got != want {
			t.Errorf("%s: %d, want %d", test.name, got, want)
		}
		if got, _ := u.next(test.now, 32); got != want {
			t.Errorf("%s, and again: %d, want %d", test.name, got, want)
		}
	}
}

// FuzzResume wants whoever takes the total for a counter to find no growth that
// was none: at most what was counted, or twice that where the driver was loaded
// anew and had counted almost all that fits.
func FuzzResume(f *testing.F) {
	f.Add(uint32(4_000_000_000), uint32(5), true)
	f.Add(uint32(4_294_967_290), uint32(50), false)
	f.Fuzz(func(t *testing.T, last, grown uint32, isLoadedAnew bool) {
		u := unwrap{last: uint64(last), total: 1<<33 + uint64(last), begun: true, resumes: true}
		now, most := last+grown, uint64(grown)
		if isLoadedAnew {
			now, most = grown, 2*uint64(grown)
		}
		before := u.total
		got, _ := u.next(uint64(now), 32)
		seen := got // all that a counter has which was reset
		if got >= before {
			seen = got - before
		}
		if seen > most {
			t.Fatalf("from %d to %d: %d seen, want at most %d", last, now, seen, most)
		}
	})
}
