package exporter

import (
	"hash/fnv"
	"time"

	"railhead/internal/counters"
)

// schedule says when the tiers of a network card are due.
type schedule struct {
	intervals [counters.Tiers]time.Duration
	next      [counters.Tiers]time.Time
	tiers     []counters.Tier
}

// newSchedule begins right after a first pass. Cards start together, so each
// tier of each card is shifted by up to one interval, by its name, that they do
// not go on together. The tiers of one card keep to the beat of its fastest and
// so are read together where they meet: what is opened in a pod, and keeps its
// namespace alive, is opened once for all of them.
func newSchedule(id string, intervals [counters.Tiers]time.Duration, tiers []counters.Tier, now time.Time) *schedule {
	s := &schedule{intervals: intervals, tiers: tiers}
	var beat time.Duration
	for _, t := range tiers {
		if beat == 0 || intervals[t] < beat {
			beat = intervals[t]
		}
	}
	first := shift(beat, id)
	for _, t := range tiers {
		earliest := intervals[t]/2 + shift(intervals[t]-beat, string(byte(t))+id)
		s.next[t] = now.Add(first + (earliest - first + beat - 1).Truncate(beat))
	}
	return s
}

// shift is a part of a duration that goes by a name.
func shift(of time.Duration, name string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return time.Duration(float64(of) * float64(h.Sum32()) / (1 << 32))
}

// due returns the tiers whose time has come, and sets when they come next.
// Times that were missed are left out.
func (s *schedule) due(now time.Time) []counters.Tier {
	var due []counters.Tier
	for _, t := range s.tiers {
		if s.next[t].After(now) {
			continue
		}
		due = append(due, t)
		late := now.Sub(s.next[t])
		s.next[t] = now.Add(s.intervals[t] - late%s.intervals[t])
	}
	return due
}

// wait returns how long nothing is due; for ever where there are no tiers.
func (s *schedule) wait(now time.Time) <-chan time.Time {
	var earliest time.Time
	for _, t := range s.tiers {
		if earliest.IsZero() || s.next[t].Before(earliest) {
			earliest = s.next[t]
		}
	}
	if earliest.IsZero() {
		return nil
	}
	return time.After(earliest.Sub(now))
}
