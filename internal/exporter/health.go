package exporter

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"railhead/internal/counters"
	"railhead/internal/kernel/rdmanl"
)

// health is how reading a device goes.
type health struct {
	quarantine quarantine
	failing    [counters.Tiers]bool // the last reading had an error
	sampled    time.Time            // when it was read last; zero for never
	errors     map[failure]uint64   // how many there were
	holders    holders
}

// failure is a kind of error in reading a device.
type failure struct{ source, errno string }

func compareFailures(a, b failure) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.errno, b.errno))
}

// unheld are those of the tiers that may be read: the device is left alone in a
// tier that blocks, or in which it cannot be reached.
func (d *device) unheld(tiers []counters.Tier, now time.Time) []counters.Tier {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &d.health.quarantine
	return slices.DeleteFunc(slices.Clone(tiers), func(t counters.Tier) bool {
		return q.holds(offender{tier: t}, now) || q.holds(offender{source: unreachable, tier: t}, now)
	})
}

// wasSampled notes that something was read.
func (d *device) wasSampled(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.health.sampled = now
}

// spared is access without the questions and sources that are left alone in a
// tier.
func (d *device) spared(tier counters.Tier, access counters.Access, now time.Time) counters.Access {
	d.mu.Lock()
	defer d.mu.Unlock()
	for o := range d.health.quarantine.sentences {
		switch {
		case o.tier != tier || !d.health.quarantine.holds(o, now):
		case o.question == "":
			access = without(access, o.source)
		default:
			if access.Spared == nil {
				access.Spared = map[string]bool{}
			}
			access.Spared[o.question] = true
		}
	}
	return access
}

// sparedClient is the client to ask a source with that is about the users of the
// device; nil while that is left alone in a tier, or all of RDMA is.
func (d *device) sparedClient(source string, tier counters.Tier, c *rdmanl.Client, now time.Time) *rdmanl.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &d.health.quarantine
	if q.holds(offender{source: source, tier: tier}, now) || q.holds(offender{source: "rdma", tier: tier}, now) {
		return nil
	}
	return c
}

// note keeps what became of reading a tier. That something is gone is no
// failure: the next snapshot will show it.
func (d *device) note(tier counters.Tier, err error, now time.Time) {
	d.mu.Lock()
	defer d.unlock()
	failed := map[offender]bool{}
	for _, e := range readErrors(err) {
		o := offender{e.Source, e.Question, tier}
		if isGone(e) || errors.Is(e, errors.ErrUnsupported) || failed[o] {
			continue
		}
		failed[o] = true
		d.failed(o, e, now)
	}
	for _, o := range slices.Collect(maps.Keys(d.health.quarantine.sentences)) {
		if o.tier == tier && o.source != "" && !failed[o] && !d.health.quarantine.holds(o, now) {
			d.worked(o)
		}
	}
	d.health.failing[tier] = len(failed) > 0 || d.health.quarantine.isAny(tier, now)
}

// failed counts an error and says so where the device is left alone for it;
// later errors of the same series are not logged.
func (d *device) failed(o offender, err error, now time.Time) {
	source := cmp.Or(o.source, unreachable)
	if d.health.errors == nil {
		d.health.errors = map[failure]uint64{}
	}
	d.health.errors[failure{source, reasonOf(err)}]++
	if pause := d.health.quarantine.failed(o, err, now); pause == quarantineFirst {
		d.news = append(d.news, news{of: o, pause: pause, err: err})
	}
}

func (d *device) worked(o offender) {
	if d.health.quarantine.worked(o) {
		d.news = append(d.news, news{of: o})
	}
}

// news is what is to be logged of an offender.
type news struct {
	of    offender
	pause time.Duration // for which it is left alone; zero where it is read again
	err   error         // because of which
}

// unlock unlocks the device, and only then logs the news: nobody may read the
// log, and a scrape must not wait for that.
func (d *device) unlock() {
	list := d.news
	d.news = nil
	d.mu.Unlock()
	for _, n := range list {
		args := []any{"device", d.found.Load().RDMA.Name, "source", cmp.Or(n.of.source, unreachable), "collector", collectorName(n.of.tier)}
		if n.of.question != "" {
			args = append(args, "question", n.of.question)
		}
		if n.pause == 0 {
			d.exporter.config.Logger.Info("a device is read again", args...)
			continue
		}
		d.exporter.config.Logger.Warn("a device is left alone for a while", append(args, "pause", n.pause, "error", n.err)...)
	}
}

// readError is an error in reading a source; nil for none.
func readError(source string, err error) error {
	if err == nil {
		return nil
	}
	return &counters.ReadError{Source: source, Err: err}
}

// unreachable is the source of errors that are of none: the network namespace of
// a device cannot be entered.
const unreachable = "device"

// attributionSource is the source of errors in finding out who uses a device.
const attributionSource = "attribution"

// boundSource is the source of errors in having queue pairs counted apart.
const boundSource = "qp_counters"

// readErrors returns the errors of sources that a joined error holds, by
// source; all that names none is one of the device.
func readErrors(err error) []*counters.ReadError {
	if err == nil {
		return nil
	}
	if e, ok := err.(*counters.ReadError); ok { //nolint:errorlint // the tree of errors is walked here
		return []*counters.ReadError{e}
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []*counters.ReadError{{Source: unreachable, Err: err}}
	}
	var list []*counters.ReadError
	for _, err := range joined.Unwrap() {
		list = append(list, readErrors(err)...)
	}
	return list
}
