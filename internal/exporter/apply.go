package exporter

import (
	"cmp"
	"slices"
	"time"

	"railhead/internal/counters"
	"railhead/internal/inventory"
)

// apply makes the devices those of a snapshot, and returns the network cards
// that have any. The series of a device that is gone end here.
func (e *Exporter) apply(s *inventory.Snapshot) []*nic {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s == nil || s == e.snapshot.Load() {
		return e.nics
	}
	e.snapshot.Store(s)
	known := map[string]*device{}
	cards := map[string]*nic{}
	for _, n := range e.nics {
		cards[n.id] = n
		for _, d := range n.list() {
			known[d.identity] = d
		}
	}
	sections := []*section{e.facts}
	members := map[string][]*device{}
	for i := range s.Devices {
		found := &s.Devices[i]
		if found.RDMA == nil || !e.devices.matches(found.RDMA.Name) {
			continue
		}
		d := known[identityOf(found)]
		if d == nil {
			d = newDevice(e, found)
		}
		d.found.Store(found)
		members[cardOf(found)] = append(members[cardOf(found)], d)
		sections = append(sections, d.section)
	}
	e.nics = arrange(e, cards, members)
	e.publishFacts(s)
	e.store.arrange(sections)
	return e.nics
}

// arrange gives each card its devices. Cards without any are gone.
func arrange(e *Exporter, known map[string]*nic, members map[string][]*device) []*nic {
	var nics []*nic
	for id, devices := range members {
		n := known[id]
		if n == nil {
			n = newNIC(e, id)
		}
		delete(known, id)
		n.take(devices)
		nics = append(nics, n)
	}
	for _, gone := range known {
		go gone.close() // which waits for the pass that is under way
	}
	slices.SortFunc(nics, func(a, b *nic) int { return cmp.Compare(a.id, b.id) })
	return nics
}

// cardOf is what stands for the network card of a device, whose functions are
// read one after the other because one firmware answers for all: the PF.
func cardOf(d *inventory.Device) string { return cmp.Or(d.Parent, d.ID) }

// publishFacts publishes what the snapshot itself tells of the devices.
func (e *Exporter) publishFacts(s *inventory.Snapshot) {
	subjects := map[string]subject{}
	p, shared := &page{}, texts{}
	var lines []line
	var values []uint64
	for i := range s.Devices {
		if d := &s.Devices[i]; d.RDMA != nil && e.devices.matches(d.RDMA.Name) {
			subject := e.subject(d)
			subjects[d.RDMA.Name] = subject
			p.rows = e.appendPorts(p.rows, subject)
		}
	}
	for _, sample := range counters.Facts(s, nil) {
		name := labelValue(sample.Series.Labels, "device")
		subject, ok := subjects[name]
		if name != "" && !ok {
			continue // the filter keeps it back
		}
		lines = e.appendLines(lines, sample.Series, subject, shared)
		for len(values) < len(lines) {
			values = append(values, sample.Value)
		}
	}
	for i := range lines {
		p.rows = append(p.rows, row{&lines[i], values[i]})
	}
	sortRows(p.rows)
	e.facts.publish(map[part]*page{slowPart: p})
}

// attribute finds out whose the devices are now.
func (e *Exporter) attribute() {
	s := e.snapshot.Load()
	if s == nil || e.config.Attributor == nil {
		return
	}
	start := time.Now()
	err := e.config.Attributor.Refresh(s.Devices)
	e.self.observe("attribution", time.Since(start))
	e.status.attributed(err, e.config.Logger)
	if e.spiderpool { // which tells pods also on what the snapshot tells
		e.mu.Lock()
		defer e.mu.Unlock()
		e.publishFacts(s)
	}
}

func labelValue(labels []counters.Label, name string) string {
	for _, l := range labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// sortRows brings the rows of a family together. Most are already.
func sortRows(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.line.family.index, b.line.family.index) })
}
