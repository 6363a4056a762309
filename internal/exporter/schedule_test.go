package exporter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/counters"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	all := []counters.Tier{counters.Traffic, counters.Errors, counters.Slow}
	s := newSchedule("0000:17:00.0", DefaultIntervals(), all, start)
	count := map[counters.Tier]int{}
	last := map[counters.Tier]time.Time{}
	for now := start; now.Before(start.Add(time.Hour)); now = now.Add(100 * time.Millisecond) {
		for _, tier := range s.due(now) {
			interval := DefaultIntervals()[tier]
			gap := interval
			if count[tier] > 0 {
				gap = now.Sub(last[tier])
			} else if first := now.Sub(start); first < interval/2 || first > interval*3/2+100*time.Millisecond {
				t.Errorf("tier %d comes first after %v", tier, first)
			}
			if gap != interval {
				t.Errorf("tier %d came after %v", tier, gap)
			}
			count[tier]++
			last[tier] = now
		}
	}
	want := map[counters.Tier]int{counters.Traffic: 720, counters.Errors: 240, counters.Slow: 60}
	for tier, n := range want {
		if got := count[tier]; got < n-1 || got > n+1 {
			t.Errorf("tier %d came %d times, want about %d", tier, got, n)
		}
	}
}

// TestScheduleTogether wants tiers that are rare to come with the others.
func TestScheduleTogether(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	all := []counters.Tier{counters.Traffic, counters.Errors, counters.Slow}
	for _, id := range []string{"0000:17:00.0", "0000:2a:00.0", "0000:3d:00.0", "0000:50:00.0"} {
		s := newSchedule(id, DefaultIntervals(), all, start)
		for now := start; now.Before(start.Add(10 * time.Minute)); now = now.Add(100 * time.Millisecond) {
			if due := s.due(now); len(due) > 0 && due[0] != counters.Traffic {
				t.Errorf("%s: tiers %v are read without the first, after %v", id, due, now.Sub(start))
			}
		}
	}
}

// TestScheduleLate comes back after a long pause: what was missed is not read
// many times over.
func TestScheduleLate(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	s := newSchedule("a", DefaultIntervals(), []counters.Tier{counters.Traffic}, start)
	late := start.Add(time.Hour)
	if diff := cmp.Diff([]counters.Tier{counters.Traffic}, s.due(late)); diff != "" {
		t.Error(diff)
	}
	if again := s.due(late); again != nil {
		t.Errorf("due again at once: %v", again)
	}
	if next := s.next[counters.Traffic]; !next.After(late) || next.After(late.Add(5*time.Second)) {
		t.Errorf("next at %v after the pause", next.Sub(late))
	}
}

// TestScheduleSpread wants cards that start together to be read apart.
func TestScheduleSpread(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	first := map[time.Time]bool{}
	for _, id := range []string{"0000:17:00.0", "0000:2a:00.0", "0000:3d:00.0", "0000:50:00.0"} {
		first[newSchedule(id, DefaultIntervals(), []counters.Tier{counters.Traffic}, start).next[counters.Traffic]] = true
	}
	if len(first) != 4 {
		t.Errorf("4 cards are read at %d moments", len(first))
	}
}

func TestScheduleOfNothing(t *testing.T) {
	t.Parallel()
	s := newSchedule("a", DefaultIntervals(), nil, time.Unix(0, 0))
	if s.wait(time.Unix(0, 0)) != nil || s.due(time.Now()) != nil {
		t.Error("something is due where nothing is read")
	}
}
