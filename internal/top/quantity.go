package top

import (
	"maps"
	"strings"
	"time"
)

// quantity is a number that is made of counters.
type quantity struct {
	of        func(*Rates) *Rate
	terms     []term
	isTraffic bool      // agents read it often: the last two samples tell most
	isRatio   bool      // the busiest series counts, not the sum; at most 1
	label     [2]string // only series with this label
}

// term is a part of a sum: the first choice that a device counts.
type term []choice

// choice is what some families, less others, have grown by. The agent exports
// many counters under a vendor-neutral name and under that of the kernel; only
// one of them may count.
type choice struct{ add, less []string }

func families(names ...string) choice { return choice{add: names} }

// shownFamilies are all families that top reads.
func shownFamilies() map[string]bool {
	shown := map[string]bool{
		sampleAge: true, quarantined: true, deviceInfo: true, portInfo: true, portState: true, portPhysicalState: true,
		portSpeed: true, podInfo: true, podDeviceInfo: true, podQueuePairs: true, deviceResources: true,
	}
	maps.Copy(shown, familiesOf(func(*quantity) bool { return true }))
	return shown
}

// familiesOf are those that some quantities are made of, for devices and pods.
func familiesOf(isWanted func(*quantity) bool) map[string]bool {
	names := map[string]bool{}
	for _, q := range quantities {
		if !isWanted(q) {
			continue
		}
		for _, t := range q.terms {
			for _, c := range t {
				for _, name := range append(c.add, c.less...) {
					names[name] = true
					names[podFamily(name)] = true
				}
			}
		}
	}
	return names
}

// podFamily is the family of a pod's share.
func podFamily(name string) string {
	if rest, ok := strings.CutPrefix(name, "rdma_port_"); ok {
		return "rdma_pod_" + rest
	}
	return "rdma_pod_" + strings.TrimPrefix(name, "rdma_")
}

// comparison is a subject at two moments.
type comparison struct {
	about subject
	now   *Scrape
	then  *Scrape // nil where there is none to compare with
	took  time.Duration
}

// rate returns a quantity in the time between the moments.
func (c comparison) rate(q *quantity) Rate {
	if c.then == nil || c.took <= 0 {
		return Rate{}
	}
	var sum Rate
	for _, t := range q.terms {
		for _, alternative := range t {
			if grown := c.choice(q, alternative); grown.isKnown {
				sum = sum.plus(grown)
				break
			}
		}
	}
	rate := sum.over(known(c.took.Seconds()))
	if q.isRatio && rate.isKnown {
		rate.value = min(rate.value, 1) // clocks are read at other moments than counters
	}
	return rate
}

func (c comparison) choice(q *quantity, of choice) Rate {
	added := c.grown(q, of.add)
	if less := c.grown(q, of.less); added.isKnown && less.isKnown {
		return known(max(0, added.value-less.value))
	}
	return added
}

// grown tells by how much families have grown.
func (c comparison) grown(q *quantity, names []string) Rate {
	var total Rate
	for _, name := range names {
		if c.about.pod != (podName{}) {
			name = podFamily(name)
		}
		for _, p := range c.now.subjects[c.about][name] {
			if q.label[0] != "" && p.labels[q.label[0]] != q.label[1] {
				continue
			}
			if q.isRatio {
				total = most(total, c.increase(p))
			} else {
				total = total.plus(c.increase(p))
			}
		}
	}
	return total
}

// increase tells by how much a counter has grown. One that is less than before
// began again from 0. Of one that is new nothing is known.
func (c comparison) increase(p point) Rate {
	before, ok := c.then.values[p.key]
	switch {
	case !ok:
		return Rate{}
	case p.value < before:
		return known(p.value)
	default:
		return known(p.value - before)
	}
}
