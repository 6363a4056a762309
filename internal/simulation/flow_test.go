package simulation

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	type answer struct {
		Count  int
		Active bool
		Next   time.Duration
	}
	s := time.Second
	tests := []struct {
		name   string
		window window
		at     time.Duration
		want   answer
	}{
		{"always", schedule{}, 5 * s, answer{1, true, forever}},
		{"not yet", schedule{from: 9 * s}, 5 * s, answer{0, false, 9 * s}},
		{"within", schedule{from: 3 * s, last: 4 * s}, 5 * s, answer{1, true, 7 * s}},
		{"at its end", schedule{from: 3 * s, last: 2 * s}, 5 * s, answer{1, false, forever}},
		{"again", schedule{from: 1 * s, last: 2 * s, every: 3 * s}, 5 * s, answer{2, true, 6 * s}},
		{"between", schedule{from: 1 * s, last: 1 * s, every: 3 * s}, 5 * s, answer{2, false, 7 * s}},
		{"nested, before", nested{schedule{from: 10 * s, last: 10 * s}, schedule{last: s, every: 4 * s}}, 5 * s, answer{0, false, 10 * s}},
		{"nested, down", nested{schedule{from: 4 * s, last: 10 * s}, schedule{last: 2 * s, every: 4 * s}}, 5 * s, answer{1, true, 6 * s}},
		{"nested, up", nested{schedule{from: 2 * s, last: 10 * s}, schedule{last: 2 * s, every: 4 * s}}, 5 * s, answer{1, false, 6 * s}},
		{
			"nested, cut",
			nested{schedule{from: 2 * s, last: 3500 * time.Millisecond}, schedule{last: 9 * s, every: 10 * s}},
			5 * s,
			answer{1, true, 5500 * time.Millisecond},
		},
		{"nested, over", nested{schedule{from: 0, last: 4 * s}, schedule{last: s, every: 2 * s}}, 5 * s, answer{2, false, forever}},
		{
			"nested, again",
			nested{schedule{last: 2 * s, every: 4 * s}, schedule{last: s, every: 2 * s}},
			4500 * time.Millisecond,
			answer{2, true, 5 * s},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got answer
			got.Count, got.Active = tt.window.turn(tt.at)
			got.Next = tt.window.next(tt.at)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("at %v (-want +got):\n%s", tt.at, diff)
			}
		})
	}
}

// flows are one of each shape, held back at times.
func flows() map[string]func() *flow {
	down := brake{window: nested{schedule{from: 7 * time.Second, last: 20 * time.Second, every: time.Minute}, schedule{last: 2 * time.Second, every: 5 * time.Second}}}
	slow := brake{window: schedule{from: 30 * time.Second, last: 50 * time.Second}, share: 0.3}
	times := schedule{from: 3 * time.Second, last: 100 * time.Second, every: 130 * time.Second}
	all := map[string]func() *flow{}
	for _, pattern := range []string{patternSteady, patternTraining, patternWave} {
		all[pattern] = func() *flow {
			return &flow{
				shape: shape{pattern: pattern, period: 7 * time.Second, busy: 0.6, jitter: 0.5, seed: 9}, times: times, brakes: []brake{down, slow},
			}
		}
	}
	return all
}

// TestFlow checks that a flow never falls, and that what it has brought by a
// moment does not depend on when else it was asked.
func TestFlow(t *testing.T) {
	t.Parallel()
	for name, make := range flows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			often, last := make(), 0.0
			for at := time.Duration(0); at < 10*time.Minute; at += 730 * time.Millisecond {
				now := often.seconds(at)
				if now < last {
					t.Fatalf("at %v it fell from %v to %v", at, last, now)
				}
				if fresh := make().seconds(at); fresh != now {
					t.Fatalf("at %v it is %v, and %v where it was asked before", at, fresh, now)
				}
				last = now
			}
			if last == 0 {
				t.Error("it brought nothing")
			}
			if again := often.seconds(time.Minute); again != make().seconds(time.Minute) {
				t.Errorf("back at 1m it is %v", again)
			}
		})
	}
}

// TestShapeAverage checks how much a shape brings in the long run.
func TestShapeAverage(t *testing.T) {
	t.Parallel()
	const hour = 3600
	for pattern, want := range map[string]float64{patternSteady: hour, patternTraining: 0.6 * hour, patternWave: hour} {
		s := shape{pattern: pattern, period: 8 * time.Second, busy: 0.6, jitter: 0.2, seed: 1}
		if got := s.seconds(time.Hour); math.Abs(got-want) > 8 {
			t.Errorf("%s: %v busy seconds an hour, want %v", pattern, got, want)
		}
	}
}

func TestFlowStops(t *testing.T) {
	t.Parallel()
	f := flow{
		shape: steady(), times: schedule{from: 10 * time.Second, last: 100 * time.Second},
		brakes: []brake{
			{window: schedule{from: 20 * time.Second, last: 10 * time.Second}},
			{window: schedule{from: 50 * time.Second, last: 20 * time.Second}, share: 0.5},
		},
	}
	for at, want := range map[time.Duration]float64{
		5 * time.Second: 0, 15 * time.Second: 5, 25 * time.Second: 10, 35 * time.Second: 15,
		60 * time.Second: 35, 80 * time.Second: 50, time.Hour: 80,
	} {
		if got := f.seconds(at); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		row         row
		value, want uint64
	}{
		{row{bits: 64}, math.MaxUint64, math.MaxUint64},
		{row{bits: 32}, 1<<32 + 5, 5},
		{row{bits: 8, saturates: true}, 300, 255},
		{row{bits: 8, saturates: true}, 200, 200},
	}
	for _, tt := range tests {
		if got := tt.row.limit(tt.value); got != tt.want {
			t.Errorf("%d in %d bits: %d, want %d", tt.value, tt.row.bits, got, tt.want)
		}
	}
}
