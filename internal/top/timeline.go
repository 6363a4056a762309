package top

import (
	"slices"
	"time"
)

// timeline is what scrapes, oldest first, tell of when counters were read.
type timeline struct {
	scrapes []*Scrape
	cards   map[string]string    // by device
	read    map[string][]reading // by card; none of a source that reads when it is asked
	period  time.Duration        // between two readings of a card; 0 where it is not known
}

func newTimeline(scrapes []*Scrape, moved []map[string]bool) *timeline {
	t := &timeline{scrapes: scrapes, read: map[string][]reading{}}
	if t.now().isFresh {
		return t
	}
	t.cards = t.now().cards()
	devices := map[string][]string{} // by card
	for device, card := range t.cards {
		devices[card] = append(devices[card], device)
	}
	for card, members := range devices {
		t.read[card] = readingsOf(scrapes, moved, members)
	}
	t.period = periodOf(t.read)
	return t
}

// cards returns the PF that each device is on; the device itself where it is on
// none.
func (s *Scrape) cards() map[string]string {
	cards := map[string]string{}
	for about, families := range s.subjects {
		if _, isKnown := cards[about.device]; about.device != "" && !isKnown {
			cards[about.device] = about.device
		}
		for _, info := range families[portInfo] {
			if pf := info.labels["pf_device"]; pf != "" && about.device != "" {
				cards[about.device] = pf
			}
		}
	}
	return cards
}

func (t *timeline) now() *Scrape { return t.scrapes[len(t.scrapes)-1] }

// compare returns the rates of a subject: traffic since a short while ago, so
// that it is what goes on now, and all else over the whole history.
func (t *timeline) compare(about subject) Rates {
	traffic, events := t.traffic(about), t.events(about)
	var r Rates
	for _, q := range quantities {
		if q.isTraffic {
			*q.of(&r) = traffic.rate(q)
		} else {
			*q.of(&r) = events.rate(q)
		}
	}
	return r
}

// traffic compares with the reading two periods before the last. All functions
// of a card are compared over the same time, or their sum were no rate of any.
func (t *timeline) traffic(about subject) comparison {
	if t.now().isFresh {
		return t.sinceLast(about)
	}
	c := comparison{about: about, now: t.now()}
	readings := t.read[t.cards[about.device]]
	end := t.end(about.device)
	for i := range slices.Backward(readings) {
		since := began(readings, i, t.period)
		if i == len(readings)-1 && !end.After(readings[i].by) {
			continue
		}
		c.then, c.took = t.scrapes[readings[i].scrape], end.Sub(since)
		if t.period > 0 && end.Sub(readings[i].by) > t.period*3/2 {
			break
		}
	}
	if c.then == nil && t.isIdle(about.device) {
		c.then, c.took = t.scrapes[0], t.now().At.Sub(t.scrapes[0].At)
	}
	return c
}

// sinceLast compares with the sample before the last.
func (t *timeline) sinceLast(about subject) comparison {
	c := comparison{about: about, now: t.now()}
	for _, s := range slices.Backward(t.scrapes[:len(t.scrapes)-1]) {
		if c.since(s); c.took >= sampleGap {
			break
		}
	}
	return c
}

// since compares with an earlier scrape, if the values of the device are other
// ones. An agent reads the kernel less often than it may be asked: the time
// between two samples counts, not that between two answers.
func (c *comparison) since(then *Scrape) {
	took := c.now.sampledAt(c.about.device).Sub(then.sampledAt(c.about.device))
	if took >= sampleGap {
		c.then, c.took = then, took
	}
}

// events compares with the first scrape. What was read just before it counts
// for a whole interval of the agent's, so that a short time tells too much.
func (t *timeline) events(about subject) comparison {
	c := comparison{about: about, now: t.now()}
	c.since(t.scrapes[0])
	if c.then != nil && !t.now().isFresh {
		c.took = max(c.took, EventsInterval)
	}
	return c
}

// end is when the last reading of a card was. A reading that is overdue by half
// a period has been, and found what there was before.
func (t *timeline) end(device string) time.Time {
	readings := t.read[t.cards[device]]
	if len(readings) == 0 {
		return time.Time{}
	}
	end := readings[len(readings)-1].by
	if t.period > 0 {
		overdue := t.now().sampledAt(device).Sub(end) - t.period/2
		end = end.Add(max(0, overdue).Truncate(t.period))
	}
	return end
}

// isIdle tells whether a card was read and nothing had passed it: the agent has
// read as much as all cards twice since the first scrape, which has what the
// device counts too.
func (t *timeline) isIdle(device string) bool {
	first, now := t.scrapes[0], t.now()
	isSampled := now.sampledAt(device).Sub(first.sampledAt(device)) >= sampleGap
	return isSampled && len(t.read[t.cards[device]]) == 0 && now.passes-first.passes >= 2*float64(len(t.read)) &&
		!now.countsMore(first, device)
}

// isSettled tells whether there are rates of all devices that can have some:
// the agent read their cards twice. A source that reads when it is asked has
// read what can be read. Where there are no devices another scrape is enough.
func (t *timeline) isSettled() bool {
	if len(t.scrapes) < 2 {
		return false
	}
	hasExact, hasNews := false, false
	for about := range t.now().subjects {
		switch {
		case about.device == "":
		case t.now().isFresh:
			hasExact = true
			hasNews = hasNews || t.sinceLast(about).then != nil
		case len(t.read[t.cards[about.device]]) < 2 && !t.isIdle(about.device) && staleness(t.now(), about.device) == "":
			return false
		}
	}
	return hasNews || !hasExact
}
