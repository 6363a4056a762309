package top

import (
	"slices"
	"time"
)

const (
	// DefaultWindow is the time over which events are counted. It holds a few
	// readings of even what agents read seldom, and shows what happens rarely
	// for as long.
	DefaultWindow = time.Minute
	// EventsInterval is how often an agent reads events and states, unless an
	// administrator says otherwise. Once needs as long to see some.
	EventsInterval = 15 * time.Second
	// staleAfter is how old values may be that are shown as those of now.
	staleAfter = 30 * time.Second
	// sampleGap is how much later a sample is another one, and not the same
	// with its age rounded.
	sampleGap = 100 * time.Millisecond
)

// History are the scrapes of a window of time, oldest first.
type History struct {
	Window  time.Duration
	scrapes []*Scrape
	moved   []map[string]bool // by scrape: devices whose traffic is not that of the scrape before
}

// Add takes another scrape and forgets what is older than the window, except
// for the one before.
func (h *History) Add(s *Scrape) {
	first := 0
	for first < len(h.scrapes)-1 && s.At.Sub(h.scrapes[first].At) > h.Window {
		first++
	}
	var moved map[string]bool
	if n := len(h.scrapes); n > 0 {
		moved = s.movedSince(h.scrapes[n-1])
	}
	h.scrapes = append(slices.Delete(h.scrapes, 0, first), s)
	h.moved = append(slices.Delete(h.moved, 0, first), moved)
}

// Frame makes rows of what the history holds; none where it is empty.
func (h *History) Frame() *Frame {
	if len(h.scrapes) == 0 {
		return &Frame{}
	}
	return newFrame(newTimeline(h.scrapes, h.moved))
}

// movedSince tells of which devices the traffic counters are other ones than in
// the scrape before.
func (s *Scrape) movedSince(before *Scrape) map[string]bool {
	moved := map[string]bool{}
	for about, families := range s.subjects {
		if about.device == "" || moved[about.device] {
			continue
		}
		for family, points := range families {
			if trafficFamilies[family] && slices.ContainsFunc(points, func(p point) bool {
				value, ok := before.values[p.key]
				return ok && value != p.value
			}) {
				moved[about.device] = true
			}
		}
	}
	return moved
}

// countsMore tells whether a device has traffic counters that an earlier scrape
// has not.
func (s *Scrape) countsMore(before *Scrape, device string) bool {
	for about, families := range s.subjects {
		for family, points := range families {
			if about.device == device && trafficFamilies[family] && slices.ContainsFunc(points, func(p point) bool {
				_, ok := before.values[p.key]
				return !ok
			}) {
				return true
			}
		}
	}
	return false
}
