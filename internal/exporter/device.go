package exporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"railhead/internal/counters"
	"railhead/internal/inventory"
)

// device is a device that is sampled, for as long as it is registered under one
// name in one place. Where that changes, there is a new one, which begins anew.
type device struct {
	exporter *Exporter
	identity string
	section  *section
	found    atomic.Pointer[inventory.Device] // as the newest snapshot shows it
	isRead   atomic.Bool                      // all tiers were, or were tried
	isBusy   atomic.Bool                      // it is being read
	setbacks atomic.Uint64                    // of narrow counters

	// Used by the one reading.
	reader  *counters.Reader
	samples []counters.Sample // of the tier that is read, in memory of the card
	lines   [counters.Tiers]lines
	shares  shares
	unknown int // how many unknown counters were told to the status

	binding binding

	mu      sync.Mutex // guards what the status of the exporter shows, and the reading
	health  health
	reading reading
	news    []news // to be logged when mu is unlocked
}

func newDevice(e *Exporter, found *inventory.Device) *device {
	d := &device{
		exporter: e,
		identity: identityOf(found),
		section:  &section{},
		reader:   counters.NewReader(found),
		shares:   newShares(),
	}
	d.found.Store(found)
	e.narrow.begin(d, found.ID)
	return d
}

// identityOf says all that a counters.Reader depends on.
func identityOf(d *inventory.Device) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", d.ID, d.RDMA.Name)
	if d.RDMA.Index != nil {
		fmt.Fprintf(&b, " %d", *d.RDMA.Index)
	}
	writeNetNS(&b, d.RDMA.NetNS)
	for i := range d.RDMA.Ports {
		p := &d.RDMA.Ports[i]
		fmt.Fprintf(&b, " port %d %s %s %v", p.Number, p.LinkLayer, p.Netdev, p.Representor)
	}
	if d.Bond != nil {
		fmt.Fprintf(&b, " bond %s %v", d.Bond.Name, d.Bond.Members)
	}
	for i := range d.Netdevs {
		fmt.Fprintf(&b, " netdev %d %s", d.Netdevs[i].Index, d.Netdevs[i].Name)
		writeNetNS(&b, d.Netdevs[i].NetNS)
	}
	return b.String()
}

func writeNetNS(b *strings.Builder, where *inventory.NetNS) {
	if where != nil {
		fmt.Fprintf(b, " in %d:%d", where.Dev, where.Ino)
	}
}

// read reads tiers of the device and publishes each when it was read, so that
// one which blocks takes none of the others with it. It ends early when nobody
// waits for it any more.
func (d *device) read(s *sockets, now time.Time, tiers []counters.Tier) {
	found := d.found.Load()
	subject := d.exporter.subject(found)
	subject.pod = d.known(subject.pod)
	access, done, errReach := s.reach(found, d.needs(subject, tiers))
	defer done()
	if isNothing(access) {
		d.withdraw(tiers, errReach, now)
		return
	}
	d.samples = s.samples
	defer func() {
		clear(d.samples)
		s.samples, d.samples = d.samples[:0], nil
	}()
	start := time.Now()
	errHold := d.hold(d.sparedClient(attributionSource, tiers[0], access.RDMA, now), subject)
	d.spent(durations{attribution: time.Since(start)})
	for _, tier := range tiers {
		if !d.goesOn(tier) {
			return
		}
		err := d.readTier(access, subject, tier, now)
		d.note(tier, errors.Join(errReach, errHold, err), now)
		errHold = nil // which was one question, for the first of the tiers
		d.answered(tier)
	}
	d.tellUnknown()
	d.isRead.Store(true)
}

// readTier reads a tier and publishes it.
func (d *device) readTier(access counters.Access, s subject, tier counters.Tier, now time.Time) error {
	var took durations
	var err, errShares error
	pages := map[part]*page{}
	start := time.Now()
	d.samples, err = d.reader.Read(tier, d.spared(tier, access, now), d.samples[:0])
	d.exporter.narrow.keep(d)
	d.setbacks.Store(d.reader.WentBack())
	pages[part(tier)] = &page{rows: d.lines[tier].rows(d.exporter, d.samples, s), expires: d.expiry(tier, now)}
	took.tiers[tier] = time.Since(start)
	start = time.Now()
	pages[podTrafficPart+part(tier)], errShares = d.sharesPage(access.RDMA, s, tier, now)
	took.attribution = time.Since(start)
	d.endShares(pages)
	d.section.publish(pages)
	d.spent(took)
	if len(d.samples) > 0 && d.exporter.config.Now().Before(pages[part(tier)].expires) {
		d.wasSampled(now)
	}
	return errors.Join(err, errShares)
}

// needs are the sources that reading tiers asks. Who uses a device is asked of
// RDMA: what pods have of it in the slow tier and when they are new, and who
// they are wherever it is no pod's alone.
func (d *device) needs(s subject, tiers []counters.Tier) needs {
	need := needs{}
	for _, source := range []string{"rdma", "ethtool", "link", "devlink", "sysfs"} {
		need[source] = slices.ContainsFunc(tiers, func(t counters.Tier) bool { return d.reader.Asks(source, t) })
	}
	if d.exporter.config.Attributor != nil && (s.pod == nil || slices.Contains(tiers, counters.Slow) || d.areUsesDue()) {
		need["rdma"] = true
	}
	return need
}

// withdraw ends the series of tiers that cannot be read.
func (d *device) withdraw(tiers []counters.Tier, err error, now time.Time) {
	pages := map[part]*page{}
	for _, tier := range tiers {
		pages[part(tier)], pages[podTrafficPart+part(tier)] = nil, nil
		d.note(tier, err, now)
	}
	d.setHolders(nil)
	d.endShares(pages)
	d.section.publish(pages)
	d.isRead.Store(true)
}

// A part of a device that was not read for intervalsMost intervals is served no
// more.
const intervalsMost = 3

func (d *device) expiry(tier counters.Tier, now time.Time) time.Time {
	return now.Add(intervalsMost * d.exporter.config.Intervals[tier])
}
