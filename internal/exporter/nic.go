package exporter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"railhead/internal/counters"
)

// nic reads the functions of a network card, one after the other.
type nic struct {
	exporter *Exporter
	id       string
	devices  atomic.Pointer[[]*device]
	arrived  chan struct{} // holds one when there are devices that were never read

	isRead atomic.Bool // all devices were, once

	passing sync.Mutex // held for a pass
	sockets *sockets
}

func newNIC(e *Exporter, id string) *nic {
	n := &nic{exporter: e, id: id, arrived: make(chan struct{}, 1), sockets: newSockets(e.config.Node)}
	n.devices.Store(&[]*device{})
	return n
}

func (n *nic) list() []*device { return *n.devices.Load() }

// take makes the devices those of the card, and has those that are new read.
func (n *nic) take(devices []*device) {
	n.devices.Store(&devices)
	for _, d := range devices {
		if !d.isRead.Load() {
			select {
			case n.arrived <- struct{}{}:
			default: // it is told already
			}
			return
		}
	}
}

// run reads what is due until ctx ends.
func (n *nic) run(ctx context.Context) {
	defer n.close()
	now := n.exporter.config.Now
	schedule := newSchedule(n.id, n.exporter.config.Intervals, n.exporter.tiers, now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.arrived:
			n.pass(ctx, now(), nil)
		case <-schedule.wait(now()):
			n.pass(ctx, now(), schedule.due(now()))
		}
	}
}

// close closes what the card keeps open. A later pass would open it again.
func (n *nic) close() {
	n.passing.Lock()
	defer n.passing.Unlock()
	n.sockets.close()
}

// pass reads tiers of all devices of the card, and those that were never read
// whole.
func (n *nic) pass(ctx context.Context, now time.Time, tiers []counters.Tier) {
	n.passing.Lock()
	defer n.passing.Unlock()
	var took durations
	for _, d := range n.list() {
		if ctx.Err() != nil {
			return
		}
		due := tiers
		if !d.isRead.Load() {
			due = n.exporter.tiers
		}
		if len(due) > 0 {
			t, waited := n.read(ctx, d, now, due)
			took.add(t)
			now = now.Add(waited)
		}
	}
	n.isRead.Store(true)
	took.observe(n.exporter.self)
}

// patienceLeast is for how long a device may be read at least: a PF has dozens
// of firmware commands to answer, however often it is asked.
const patienceLeast = 5 * time.Second

// patience is for how long a device may be read.
func (n *nic) patience() time.Duration {
	return max(patienceLeast, n.exporter.config.Intervals[counters.Traffic])
}

// read reads a device, and leaves it to itself when that takes longer than
// patience: a function whose firmware hangs must not keep the others
// of its card from being read. The kernel cannot be told to let a call be, so
// the call goes on, with the sockets it uses, and the device is not read again
// before it has ended. It tells how long it took, and for how long it waited in
// vain.
//
// In a pod, this is the one case in which we outlast it: its network namespace
// stays for as long as the kernel does not answer.
func (n *nic) read(ctx context.Context, d *device, now time.Time, tiers []counters.Tier) (took durations, waited time.Duration) {
	if tiers = d.unheld(tiers, now); len(tiers) == 0 {
		return took, 0
	}
	if !d.isBusy.CompareAndSwap(false, true) {
		d.missed(tiers)
		return took, 0
	}
	d.begin(tiers[0])
	start := time.Now()
	done := make(chan durations, 1)
	used := n.sockets
	go func() {
		d.read(used, now, tiers)
		d.isBusy.Store(false)
		done <- d.took()
	}()
	patience := time.NewTimer(n.patience())
	defer patience.Stop()
	select {
	case took := <-done:
		return took, 0
	case <-patience.C:
		waited = time.Since(start)
		d.blocked(now.Add(waited), tiers)
	case <-ctx.Done():
		d.abandon()
	}
	n.sockets = newSockets(n.exporter.config.Node)
	go func() {
		<-done
		used.close()
	}()
	return d.took(), waited
}

// durations is how long it took to read, by collector.
type durations struct {
	tiers       [counters.Tiers]time.Duration
	attribution time.Duration
}

func (d *durations) add(other durations) {
	for t, took := range other.tiers {
		d.tiers[t] += took
	}
	d.attribution += other.attribution
}

func (d *durations) observe(s *self) {
	for t, took := range d.tiers {
		if took > 0 {
			s.observe(collectorName(counters.Tier(t)), took)
		}
	}
	if d.attribution > 0 {
		s.observe("attribution", d.attribution)
	}
}
