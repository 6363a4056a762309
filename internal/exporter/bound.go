package exporter

import (
	"errors"
	"slices"
	"sync"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/inventory"
	"railhead/internal/kernel/rdmanl"
)

// observeBound has the kernel count the queue pairs of pods apart, as far as the
// policy wants it, and tells the account what they count. It does so with the
// errors: new queue pairs are not bound long after they began, and the kernel,
// which asks the driver for each of them, is not kept busy.
//
// A device that a pod has for itself is put back: there is nothing to tell apart.
func (d *device) observeBound(c *rdmanl.Client, s subject) error {
	index, ok := s.index()
	if !ok || c == nil || d.exporter.config.Binder == nil {
		return nil
	}
	var errs []error
	for _, port := range ownPorts(s.device) {
		if s.pod != nil || !isHere(s.device) {
			errs = append(errs, d.exporter.config.Binder.Release(c, s.device.RDMA.Name, index, port))
			continue
		}
		errs = append(errs, d.reconcile(c, index, port), d.observeSets(c, index, port))
	}
	return errors.Join(errs...)
}

// ownPorts are the ports that carry the device's own traffic.
func ownPorts(d *inventory.Device) (numbers []int) {
	for i := range d.RDMA.Ports {
		if !d.RDMA.Ports[i].Representor {
			numbers = append(numbers, d.RDMA.Ports[i].Number)
		}
	}
	return numbers
}

// isHere tells whether a device is in our network namespace with all it has, so
// that processes of several pods may use it.
func isHere(d *inventory.Device) bool { return d.RDMA.NetNS == nil && netdevNetNS(d) == nil }

// binding says whether the ports of a device may still be changed.
type binding struct {
	mu    sync.Mutex // held while they are
	ended bool
}

func (d *device) reconcile(c *rdmanl.Client, index uint32, port int) error {
	d.binding.mu.Lock()
	defer d.binding.mu.Unlock()
	if d.binding.ended {
		return nil
	}
	return d.exporter.config.Binder.Reconcile(c, d.found.Load().RDMA.Name, index, port)
}

// observeSets reads the counter sets of a port. None at all is an observation
// too: those that come next begin at zero. A part of them is none: what lacks
// would seem to have ended.
func (d *device) observeSets(c *rdmanl.Client, index uint32, port int) error {
	name := d.found.Load().RDMA.Name
	read, err := d.exporter.config.Binder.Read(c, name, index, port)
	if err != nil {
		return err
	}
	sets := make([]attribution.CounterSet[*counters.Series], len(read))
	for i, set := range read {
		sets[i] = attribution.CounterSet[*counters.Series]{ID: set.ID, Pod: d.known(set.Pod), Values: d.partsOf(port, set.Values)}
	}
	d.shares.account.ObserveCounters(name, port, sets)
	return nil
}

// partsOf are counters of queue pairs by the series of the port that they are a
// part of.
func (d *device) partsOf(port int, values []attribution.Value[string]) []attribution.Value[*counters.Series] {
	parts := make([]attribution.Value[*counters.Series], 0, 2*len(values))
	for _, v := range values {
		for _, series := range d.reader.QPSeries(port, v.Family) {
			i := slices.IndexFunc(parts, func(p attribution.Value[*counters.Series]) bool { return p.Family == series })
			if i < 0 {
				i = len(parts)
				parts = append(parts, attribution.Value[*counters.Series]{Family: series})
			}
			parts[i].Value += v.Value
		}
	}
	return parts
}

// releasePatience is how long the devices have at the end to be put back.
const releasePatience = 5 * time.Second

// Release puts back what was changed on the devices, and keeps them as they are
// from then on. Run does so at its end. A device that blocks is left behind.
func (e *Exporter) Release() {
	if e.config.Binder == nil {
		return
	}
	e.mu.Lock()
	nics := e.nics
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group sync.WaitGroup
		for _, n := range nics {
			group.Go(n.release)
		}
		group.Wait()
	}()
	patience := time.NewTimer(releasePatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		e.config.Logger.Warn("not all devices could be put back in time: some count queue pairs apart for as long as these live")
	}
}

// release puts back the devices of the card, with sockets that no reading which
// blocks can hold up.
func (n *nic) release() {
	s := newSockets(n.exporter.config.Node)
	defer s.close()
	for _, d := range n.list() {
		if err := d.release(s); err != nil {
			n.exporter.config.Logger.Warn("a device is not put back: it may go on to count queue pairs apart",
				"device", d.found.Load().RDMA.Name, "error", err)
		}
	}
}

func (d *device) release(s *sockets) error {
	found := d.found.Load()
	d.binding.mu.Lock()
	defer d.binding.mu.Unlock()
	d.binding.ended = true
	if !isHere(found) || found.RDMA.Index == nil {
		return nil
	}
	access, done, err := s.reach(found, needs{"rdma": true})
	defer done()
	if access.RDMA == nil {
		return err
	}
	var errs []error
	for _, port := range ownPorts(found) {
		errs = append(errs, d.exporter.config.Binder.Release(access.RDMA, found.RDMA.Name, *found.RDMA.Index, port))
	}
	return errors.Join(errs...)
}
