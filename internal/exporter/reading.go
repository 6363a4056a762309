package exporter

import (
	"slices"
	"time"

	"railhead/internal/counters"
)

// reading is how far the reading of a device is that is under way.
type reading struct {
	tier   counters.Tier // that is read now
	begun  time.Time     // when that began
	took   durations     // so far
	isLeft bool          // nobody waits for it any more
}

// begin begins a reading.
func (d *device) begin(first counters.Tier) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reading = reading{tier: first, begun: time.Now()}
}

// goesOn goes on to a tier, unless nobody waits for it.
func (d *device) goesOn(tier counters.Tier) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reading.isLeft {
		return false
	}
	d.reading.tier, d.reading.begun = tier, time.Now()
	return true
}

// spent notes what a part of the reading took. What nobody waited for does not
// count: the time that they did wait does.
func (d *device) spent(took durations) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.reading.isLeft {
		d.reading.took.add(took)
	}
}

func (d *device) took() durations {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reading.took
}

// abandon lets the reading be, through no fault of the device.
func (d *device) abandon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reading.isLeft = true
}

// blocked lets the reading be, because the tier that it is at did not answer in
// time. Those before it did, and those behind it are not asked.
func (d *device) blocked(now time.Time, tiers []counters.Tier) {
	d.mu.Lock()
	defer d.unlock()
	d.isRead.Store(true) // as far as it can be
	r := &d.reading
	r.isLeft = true
	r.took.tiers[r.tier] += time.Since(r.begun)
	for _, t := range tiers[max(slices.Index(tiers, r.tier), 0):] {
		d.health.failing[t] = true
	}
	d.failed(offender{tier: r.tier}, errBlocked, now)
}

// answered notes that a tier did answer in time.
func (d *device) answered(tier counters.Tier) {
	d.mu.Lock()
	defer d.unlock()
	if !d.reading.isLeft {
		d.worked(offender{tier: tier})
	}
}

// missed notes tiers that could not be read, as the device is being read still.
func (d *device) missed(tiers []counters.Tier) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range tiers {
		d.health.failing[t] = true
	}
}
