package counters

import (
	"math"
	"slices"
)

// absent is the value of a counter that has none. ionic says it so too where
// its firmware does not have what it promised.
const absent = math.MaxUint64

// asker asks one source for counters. Names are the same slice as long as they
// are the same, and nil where there is nothing to tell; names and values are good
// until the next question.
type asker interface {
	ask(a Access) (names []string, values []uint64, err error)
}

// group is what one question brings, and what becomes of it. Groups with a lower
// rank are better where several could give the same series.
type group struct {
	asker
	source source
	kernel string // who is asked: what ReadError says

	question string // what is asked: likewise
	tiers    tiers
	port     *place                 // of counters of a port or function
	device   *place                 // of counters of the whole device
	accept   func(name string) bool // which counters are of this place; nil for all
	plain    bool                   // traffic for all drivers is told of another place of the same port
	rank     int32
	rest     rest

	names  []string
	inputs []input
	feeds  []int32 // which cells inputs feed, one input after the other
	cells  []*slot // whose values are in Reader.cells while the group is read

	unwraps []unwrap // of inputs that wrap

	carries bool // a counter may have come to more than the kernel's
}

// input is a counter of the kernel, in the order of names.
type input struct {
	counter *counter // nil for one that is not wanted
	unwrap  int32    // which of group.unwraps; -1 for one that does not wrap
	first   int32    // of its group.feeds, which go on to those of the next input
}

// tiers is a set of tiers.
type tiers uint8

func tiersOf(list ...Tier) tiers {
	var set tiers
	for _, t := range list {
		set |= 1 << t
	}
	return set
}

func (set tiers) has(t Tier) bool { return set&(1<<t) != 0 }

// of is the tier in which a family comes from a source that is read in these:
// its own or the next slower one, or else the slowest there is.
func (set tiers) of(t Tier) Tier {
	for slower := t; slower < Tiers; slower++ {
		if set.has(slower) {
			return slower
		}
	}
	for t > 0 && !set.has(t) {
		t--
	}
	return t
}

// take puts values into the cells of the reader, in the order of the group's. A
// cell is absent when a part of it is.
func (g *group) take(r *Reader, names []string, values []uint64) {
	if !same(g.names, names) {
		g.arrange(r, names)
	}
	r.cells = slices.Grow(r.cells[:0], len(g.cells))[:len(g.cells)]
	clear(r.cells)
	for i := range g.inputs {
		in := &g.inputs[i]
		if in.counter == nil {
			continue
		}
		value := values[i]
		if value != absent && in.unwrap >= 0 {
			var wentBack bool
			u := &g.unwraps[in.unwrap]
			if value, wentBack = u.next(value, in.counter.bits); wentBack {
				r.wentBack++
			}
			g.carries = g.carries || u.carries()
		}
		in.put(r.cells, g.feedsOf(i), value)
	}
}

// feedsOf are the cells that an input feeds.
func (g *group) feedsOf(i int) []int32 {
	if i+1 == len(g.inputs) {
		return g.feeds[g.inputs[i].first:]
	}
	return g.feeds[g.inputs[i].first:g.inputs[i+1].first]
}

// put adds a value to cells. The first one of a counter that can be saturated
// says whether it is.
func (in *input) put(cells []uint64, feeds []int32, value uint64) {
	if in.counter.saturates {
		cells[feeds[0]] = in.saturation(value)
		feeds = feeds[1:]
	}
	for _, i := range feeds {
		switch {
		case value == absent || cells[i] == absent:
			cells[i] = absent
		default:
			cells[i] += value * in.counter.factor()
		}
	}
}

// saturation is 1 for a value that is the largest which the counter can have.
func (in *input) saturation(value uint64) uint64 {
	switch {
	case value == absent:
		return absent
	case value >= 1<<in.counter.bits-1:
		return 1
	}
	return 0
}

// emit appends the samples of a tier, whose values are in the order of the cells.
func (g *group) emit(tier Tier, values []uint64, dst []Sample) []Sample {
	for i, value := range values {
		s := g.cells[i]
		if value == absent || g.tiers.of(s.series.Family.Tier) != tier {
			continue
		}
		if s.rank == 0 || s.rank > g.rank {
			s.rank = g.rank
		}
		if s.rank == g.rank {
			dst = append(dst, Sample{Series: &s.series, Value: value})
		}
	}
	return dst
}

// same tells whether names are the same slice.
func same(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
