package simulation

import (
	"math"
	"time"
)

// shape is how something goes up and down. What it has brought by a moment is
// found without adding up what was before, so that it costs nothing to start
// late.
type shape struct {
	pattern string // steady, training or wave
	period  time.Duration
	busy    float64
	jitter  float64
	seed    uint64
}

// steady is the shape of what goes on evenly.
func steady() shape { return shape{pattern: patternSteady, period: time.Second} }

// Patterns of traffic.
const (
	patternSteady   = "steady"
	patternTraining = "training"
	patternWave     = "wave"
)

// seconds returns how many busy seconds there were from 0 to t. It never falls.
func (s shape) seconds(t time.Duration) float64 {
	if s.pattern == patternSteady && s.jitter == 0 {
		return t.Seconds()
	}
	n := int64(t / s.period)
	begin, end := s.boundary(n), s.boundary(n+1)
	through := s.within(float64(t%s.period) / float64(s.period))
	return min(begin+through*(end-begin), end)
}

// boundary returns how many busy seconds the first n periods have. Jitter moves
// some of them between neighbours.
func (s shape) boundary(n int64) float64 {
	share := 1.0
	if s.pattern == patternTraining {
		share = s.busy
	}
	moved := s.jitter * float64(mix(s.seed, uint64(n))>>11) / (1 << 53)
	if n == 0 {
		moved = 0
	}
	return share * s.period.Seconds() * (float64(n) + moved)
}

// within returns which share of a period's busy seconds have passed when a
// share of it has.
func (s shape) within(x float64) float64 {
	switch s.pattern {
	case patternTraining:
		return min(x/s.busy, 1)
	case patternWave:
		return x - s.busy*math.Sin(2*math.Pi*x)/(2*math.Pi)
	default:
		return x
	}
}

// window is a schedule or a nested one.
type window interface {
	turn(t time.Duration) (count int, active bool)
	next(t time.Duration) time.Duration
}

// brake is what lets only a share through at times.
type brake struct {
	window
	share float64
}

// flow is something with a shape that goes on in certain times and is held back
// in others.
type flow struct {
	shape  shape
	times  schedule
	brakes []brake

	at  time.Duration // up to where sum goes, a moment at which something begins or ends
	sum float64
}

// seconds returns how many busy seconds the flow has had by t. It is the same
// whatever was asked before: sum ends only where something begins or ends.
func (f *flow) seconds(t time.Duration) float64 {
	if t < f.at {
		f.at, f.sum = 0, 0
	}
	for {
		next := f.next()
		if next > t {
			return f.sum + f.between(t)
		}
		f.sum += f.between(next)
		f.at = next
	}
}

// between returns the busy seconds from at until t, before which nothing begins
// or ends.
func (f *flow) between(t time.Duration) float64 {
	if _, active := f.times.turn(f.at); !active || t <= f.at {
		return 0
	}
	share := 1.0
	for _, b := range f.brakes {
		if _, active := b.turn(f.at); active {
			share *= b.share
		}
	}
	if share == 0 {
		return 0
	}
	return share * max(f.shape.seconds(t)-f.shape.seconds(f.at), 0)
}

func (f *flow) next() time.Duration {
	next := f.times.next(f.at)
	for _, b := range f.brakes {
		next = min(next, b.next(f.at))
	}
	return next
}

// mix returns a number that looks random and is the same for the same seeds
// (the finalizer of SplitMix64).
func mix(seeds ...uint64) uint64 {
	var v uint64
	for _, s := range seeds {
		v += s + 0x9e3779b97f4a7c15
		v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
		v = (v ^ v>>27) * 0x94d049bb133111eb
		v ^= v >> 31
	}
	return v
}
