package top

import (
	"slices"
	"time"
)

// reading is a moment at which an agent read the traffic of a card. It is known
// by counters that are other ones in one scrape than in the one before: the
// moment lies between. The age that the agent tells of a device narrows that
// down, but it is that of whatever was read last, so it can only be too late.
type reading struct {
	scrape    int // the first that shows it
	after, by time.Time
	isDated   bool // an age was told
}

// readingsOf finds the readings of a card, oldest first. A scrape may come
// while a card is read: what other functions show in the next is the same
// reading.
func readingsOf(scrapes []*Scrape, moved []map[string]bool, devices []string) []reading {
	var found []reading
	var last map[string]bool // devices in the last of them
	for k := 1; k < len(scrapes); k++ {
		these := map[string]bool{}
		by, isDated := scrapes[k].At, true
		for _, d := range devices {
			if moved[k][d] {
				these[d] = true
				by = earlier(by, scrapes[k].sampledAt(d))
				_, hasAge := scrapes[k].ages[d]
				isDated = isDated && hasAge
			}
		}
		if len(these) == 0 {
			continue
		}
		after := scrapes[k-1].asked
		r := reading{scrape: k, after: after, by: later(by, after), isDated: isDated}
		if n := len(found); n > 0 && found[n-1].scrape == k-1 && areApart(these, last) {
			r.after = found[n-1].after
			found = found[:n-1]
		}
		found, last = append(found, r), these
	}
	return found
}

func areApart(a, b map[string]bool) bool {
	for d := range a {
		if b[d] {
			return false
		}
	}
	return true
}

// began is the time of a reading from which a rate may be counted: never later
// than it was, as far as that is known. Where no age or period is known, that is
// the time of the scrape before. Otherwise later readings tell: there is a period
// at least between two.
func began(readings []reading, i int, period time.Duration) time.Time {
	r := readings[i]
	if period == 0 || !r.isDated {
		return r.after
	}
	at := r.by
	for m := i + 1; m < len(readings); m++ {
		at = earlier(at, readings[m].by.Add(-time.Duration(m-i)*period))
	}
	return later(at, r.after)
}

// periodLeast is of how many gaps a period is learned.
const periodLeast = 3

// periodOf learns how often an agent reads traffic: what is usual between two
// readings of a card. It is 0 where too little is known.
func periodOf(cards map[string][]reading) time.Duration {
	var gaps []time.Duration
	for _, readings := range cards {
		for i := 1; i < len(readings); i++ {
			gaps = append(gaps, readings[i].by.Sub(readings[i-1].by))
		}
	}
	if len(gaps) < periodLeast {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
