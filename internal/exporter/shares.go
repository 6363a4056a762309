package exporter

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/kernel/rdmanl"
)

// shares are what pods have of a device.
type shares struct {
	account *attribution.Account[*counters.Series]
	users   []attribution.Use // of a device that is no pod's alone, as of the last pass
	of      map[*attribution.Line[*counters.Series]]*podShare
	uses    uses
	shown   holders // of whom the pages tell
}

// podShare is what a line of the account is exposed as.
type podShare struct {
	begun time.Time
	pod   attribution.Pod // as it was known when the lines were rendered
	lines []line          // of each of the account's values; those without a family are not exposed
}

func newShares() shares {
	return shares{
		account: attribution.NewAccount(isBytes),
		of:      map[*attribution.Line[*counters.Series]]*podShare{},
	}
}

// isBytes tells which series coverage is told by: of each byte of a port they
// count one.
func isBytes(s *counters.Series) bool {
	return s.Family.Name == "rdma_port_receive_bytes" || s.Family.Name == "rdma_port_transmit_bytes"
}

// hold finds out whose the device is now. Where it is no pod's alone, whoever
// has it open uses it; as long as that cannot be asked, those who last did.
// What pods have is counted also before they are told of.
func (d *device) hold(c *rdmanl.Client, s subject) error {
	a, name := d.exporter.config.Attributor, s.device.RDMA.Name
	if a == nil {
		return nil
	}
	var err error
	if index, ok := s.index(); s.pod != nil {
		d.shares.users = nil
		d.shares.account.Hold(name, s.pod, attribution.Exclusive)
	} else {
		if ok && c != nil {
			var users []attribution.Use
			if users, err = a.Present(c, index); err == nil || isGone(err) || d.shares.users == nil {
				d.shares.users = users
			}
		}
		for i := range d.shares.users {
			d.shares.users[i].Pod = d.known(d.shares.users[i].Pod)
		}
		d.shares.account.Hold(name, attribution.Sole(d.shares.users), attribution.SoleUser)
	}
	for i := range d.shares.users {
		d.shares.account.Keep(name, d.shares.users[i].Pod)
	}
	if d.exporter.knowsPods() {
		d.setHolders(d.shares.holders(s))
	}
	return readError(attributionSource, err)
}

// observe tells the account what was just read. What is read together is a
// group: a tier of a port.
func (d *device) observe(s subject, tier counters.Tier) {
	ports := map[int][]attribution.Value[*counters.Series]{}
	for _, sample := range d.samples {
		if sample.Series.Family.Pod != "" {
			port := portOf(sample.Series)
			ports[port] = append(ports[port], attribution.Value[*counters.Series]{Family: sample.Series, Value: sample.Value})
		}
	}
	for port, values := range ports {
		d.shares.account.Observe(s.device.RDMA.Name, port, int(tier), values)
	}
}

// portOf is the port of a series; 0 for the whole device.
func portOf(s *counters.Series) int {
	port, err := strconv.Atoi(labelValue(s.Labels, "port"))
	if err != nil {
		return 0
	}
	return port
}

// sharesPage is what is exposed of the pods on the device after a tier was
// read. What queue pairs counted apart is observed first, so that no user of the
// port has it besides.
func (d *device) sharesPage(rdma *rdmanl.Client, s subject, tier counters.Tier, now time.Time) (*page, error) {
	if d.exporter.config.Attributor == nil {
		return nil, nil //nolint:nilnil // without attribution there is nothing to expose
	}
	var errBound, err error
	if tier == counters.Errors {
		errBound = d.observeBound(d.sparedClient(boundSource, tier, rdma, now), s)
	}
	d.observe(s, tier)
	if tier == d.exporter.tiers[0] {
		d.shares.account.EndPass()
	}
	err = d.readUses(d.sparedClient(attributionSource, counters.Slow, rdma, now), s, tier, now)
	p := &page{rows: d.podRows(s, tier, now), expires: d.expiry(tier, now)}
	return p, errors.Join(readError(attributionSource, err), readError(boundSource, errBound))
}

// podRows are what is told of the pods on the device with a tier.
func (d *device) podRows(s subject, tier counters.Tier, now time.Time) (rows []row) {
	if tier == counters.Slow {
		rows = d.appendUses(rows, s)
	}
	if tier == d.exporter.tiers[0] {
		rows = d.appendHolders(rows, s)
	}
	rows = d.appendShares(rows, tier, now)
	sortRows(rows)
	return rows
}

// appendShares appends the totals of the pods that are on the device.
func (d *device) appendShares(rows []row, tier counters.Tier, now time.Time) []row {
	there, before := d.holders(), d.shares.of
	d.shares.of = make(map[*attribution.Line[*counters.Series]]*podShare, len(before))
	for l := range d.shares.account.Lines() {
		known := before[l]
		if known == nil {
			known = &podShare{begun: now}
		}
		d.shares.of[l] = known
		pod := there.find(l.Pod)
		if pod == nil {
			known.lines = nil
			continue
		}
		known.render(d.exporter, l, pod)
		for i, v := range l.Values() {
			if v.Family.Family.Tier == tier && known.lines[i].family != nil {
				rows = append(rows, row{&known.lines[i], v.Value})
			}
		}
	}
	return rows
}

// endShares renews what is told of pods in the parts that are not among the
// pages which are published next, where pods came or went, or more is known of
// them than before: all parts tell the same pods by the same labels.
func (d *device) endShares(pages map[part]*page) {
	holders := d.holders()
	if slices.EqualFunc(holders, d.shares.shown, isSameHolder) && !d.shares.uses.areNew {
		return
	}
	d.shares.shown, d.shares.uses.areNew = holders, false
	subject, now := d.exporter.subject(d.found.Load()), d.exporter.config.Now()
	for tier := range counters.Tiers {
		p := podTrafficPart + part(tier)
		old := d.section.page(p)
		if _, ok := pages[p]; !ok && old != nil {
			pages[p] = &page{rows: d.podRows(subject, tier, now), expires: old.expires}
		}
	}
}

// render makes the lines of the values that have none, and of all when other
// things are known of the pod than before.
func (s *podShare) render(e *Exporter, l *attribution.Line[*counters.Series], pod *attribution.Pod) {
	if s.pod != *pod {
		s.pod, s.lines = *pod, nil
	}
	values := l.Values()
	if len(s.lines) == len(values) {
		return
	}
	lines, shared := make([]line, len(values)), texts{} // rows that are served have the old ones
	for i := copy(lines, s.lines); i < len(lines); i++ {
		lines[i] = s.line(e, l, values[i].Family, shared)
	}
	s.lines = lines
}

// line is the line of the pod's share in a series of the device; the zero line
// where the filter keeps it back.
func (s *podShare) line(e *Exporter, l *attribution.Line[*counters.Series], series *counters.Series, shared texts) line {
	f := e.catalog.known(series.Family.Pod)
	if !f.isWanted {
		return line{}
	}
	labels := append(podLabels(&s.pod),
		counters.Label{Name: "device", Value: l.Device},
		counters.Label{Name: "port", Value: labelValue(series.Labels, "port")},
		counters.Label{Name: "attribution", Value: string(l.Method)},
	)
	for _, own := range series.Family.Labels {
		labels = append(labels, counters.Label{Name: own, Value: labelValue(series.Labels, own)})
	}
	return line{family: f, labels: shared.of(labels), scale: scaleOf(series), since: s.begun.UnixMilli()}
}
