package modeltest

import "math/rand/v2"

// A watch is one process's view of a table: it lags by some events.
type watch[T any] struct {
	of   *table[T]
	at   int
	live map[string]T
}

// newWatch lists, perhaps from a cache that is behind.
func newWatch[T any](of *table[T], rng *rand.Rand, behind int) *watch[T] {
	v := &watch[T]{of: of, live: map[string]T{}}
	at := len(of.events)
	if behind > 0 {
		at = max(min(at, of.base), at-rng.IntN(behind+1))
	}
	v.advance(at)
	return v
}

func (v *watch[T]) advance(n int) {
	for end := min(v.at+n, len(v.of.events)); v.at < end; v.at++ {
		if e := v.of.events[v.at]; e.gone {
			delete(v.live, e.name)
		} else {
			v.live[e.name] = e.to
		}
	}
}

// some takes over a random number of the events that are there, none or all
// more often than others.
func (v *watch[T]) some(rng *rand.Rand, calm bool) {
	waiting := len(v.of.events) - v.at
	if waiting == 0 {
		return
	}
	switch n := rng.IntN(10); {
	case calm || n < 6:
		v.advance(waiting)
	case n < 8:
		v.advance(rng.IntN(waiting + 1))
	}
}

// settle ends the making of the cluster: nobody's view is older than that.
func (a *apiServer) settle() {
	a.pools.base, a.nodes.base, a.uses.base = len(a.pools.events), len(a.nodes.events), len(a.uses.events)
}
