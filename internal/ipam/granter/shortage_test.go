package granter

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/ipam"
)

// A pool is of use again when its ledger can be created at last.
func TestCreationFailsForAWhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pool("a", "10.1.0.0/24", "10.1.0.1-10.1.0.9")
	w.node("n1", 2, "a")
	refused := errors.New("quota")
	w.fault = func(op, _ string, _ bool) error {
		if op == "create" {
			return refused
		}
		return nil
	}
	for range 5 {
		if _, err := w.granter().Round(t.Context(), w.look()); !errors.Is(err, refused) {
			t.Errorf("error %v", err)
		}
	}
	w.fault = nil
	w.calm()
	if n := ipam.Count(w.holds("n1", "a")); n < 2 {
		t.Errorf("n1 holds %d", n)
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		held, wants []int64
		idle        int64
		short       int64
		want        []int64
	}{
		"of what is idle":          {[]int64{5, 9, 3}, []int64{5, 4, 3}, 0, 3, []int64{0, 3, 0}},
		"most over first":          {[]int64{5, 9, 8}, []int64{4, 4, 2}, 0, 7, []int64{0, 1, 6}},
		"of all if that is little": {[]int64{10, 10, 1}, []int64{10, 9, 4}, 0, 3, []int64{1, 2, 0}},
		"who wants none of it":     {[]int64{2}, []int64{2}, 6, 4, []int64{0, 4}},
		"never more than is held":  {[]int64{1, 1}, []int64{1, 1}, 0, 9, []int64{1, 1}},
		"nobody has any":           {[]int64{0, 0}, []int64{1, 1}, 0, 2, []int64{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var demands, idle []demand
			for i := range c.held {
				demands = append(demands, demand{&lease{name: string(rune('a' + i))}, &entry{held: c.held[i], wants: c.wants[i]}})
			}
			if c.idle > 0 {
				idle = append(idle, demand{&lease{name: "idle"}, &entry{held: c.idle}})
			}
			asked := recall(demands, c.short, idle)
			var got []int64
			var sum int64
			for _, d := range append(demands, idle...) {
				got = append(got, d.recall)
				sum += d.recall
			}
			if diff := cmp.Diff(c.want, got); diff != "" || asked != sum {
				t.Errorf("asked %d of %d: %s", asked, sum, diff)
			}
		})
	}
}

// A /64 has a reserve like any other pool.
func TestReserveOfALargePool(t *testing.T) {
	t.Parallel()
	for name, pool := range map[string][2]string{
		"/64": {"fd00::/64", "fd00::1-fd00::ffff:ffff:ffff:fffe"},
		"/32": {"fd00::/32", "fd00::1-fd00:0:ffff:ffff:ffff:ffff:ffff:fffe"},
		"/8":  {"10.0.0.0/8", "10.0.0.1-10.255.255.254"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.pool("a", pool[0], pool[1])
			w.node("n1", 1, "a")
			w.node("n2", 3, "a")
			w.calm()
			w.node("n2", 0, "a") // from now on it holds idle addresses
			w.calm()
			if got := w.leased("n2", "a").Reserve; got != 32 {
				t.Errorf("reserve %d", got)
			}
		})
	}
}
