package fakekernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// AddQP adds a queue pair, and binds it to a counter set where the mode of its
// port is "auto", as the kernel does when a process makes it ready. The kernel's
// own are never bound (rdma_counter_bind_qp_auto in
// drivers/infiniband/core/counters.c).
func (h *HCA) AddQP(qp rdmanl.QP) {
	h.QPs = append(slices.Clip(h.QPs), qp)
	p := h.Ports[qp.Port]
	if p == nil || p.Counters == nil || p.Mode.Mode != autoMode || qp.KernelName != "" {
		return
	}
	set := rdmanl.QPCounter{Port: qp.Port, Mode: autoMode}
	mask := maskOf(p.Mode)
	if mask&maskQPType != 0 {
		set.QPType = qp.Type
	}
	if mask&maskPID != 0 {
		set.Owner = qp.Owner
	}
	for i, c := range p.QPCounters {
		if c.Mode == autoMode && c.QPType == set.QPType && c.Owner == set.Owner {
			p.join(i, qp.Number)
			return
		}
	}
	h.bindNew(p, set, qp.Number)
}

// RemoveQP removes a queue pair, and its counter set when it was the last of it.
// What the set counted goes to the port's Values, which is up to the caller.
func (h *HCA) RemoveQP(number uint32) {
	h.QPs = slices.DeleteFunc(slices.Clone(h.QPs), func(qp rdmanl.QP) bool { return qp.Number == number })
	for _, p := range h.Ports {
		if i := p.setOf(number); i >= 0 {
			p.leave(i, number)
		}
	}
}

// bindNew binds a queue pair to a new counter set and returns its ID, which is
// the device's own.
func (h *HCA) bindNew(p *HCAPort, set rdmanl.QPCounter, qpn uint32) uint32 {
	set.ID = 1
	for _, other := range h.Ports {
		for _, c := range other.QPCounters {
			set.ID = max(set.ID, c.ID+1)
		}
	}
	set.QPNs = []uint32{qpn}
	p.QPCounters = append(slices.Clip(p.QPCounters), set)
	return set.ID
}

// setOf returns the place of the counter set that a queue pair is bound to, -1
// for none.
func (p *HCAPort) setOf(qpn uint32) int {
	return slices.IndexFunc(p.QPCounters, func(c rdmanl.QPCounter) bool { return slices.Contains(c.QPNs, qpn) })
}

// join and leave copy what they change, as replies under way may have it.
func (p *HCAPort) join(i int, qpn uint32) {
	p.QPCounters = slices.Clone(p.QPCounters)
	p.QPCounters[i].QPNs = append(slices.Clip(p.QPCounters[i].QPNs), qpn)
}

func (p *HCAPort) leave(i int, qpn uint32) {
	p.QPCounters = slices.Clone(p.QPCounters)
	set := &p.QPCounters[i]
	set.QPNs = slices.DeleteFunc(slices.Clone(set.QPNs), func(n uint32) bool { return n == qpn })
	if len(set.QPNs) > 0 {
		return
	}
	p.QPCounters = slices.Delete(p.QPCounters, i, i+1)
	if len(p.QPCounters) == 0 && p.Mode.Mode == manualMode {
		p.Mode = rdmanl.CounterMode{Mode: noMode}
	}
}

// setMode sets the mode of a port: "auto", or with an empty mask what is left of
// it (rdma_counter_set_auto_mode).
func (p *HCAPort) setMode(mode rdmanl.CounterMode) unix.Errno {
	switch {
	case p.Counters == nil, mode.AutoMask&^(maskQPType|maskPID) != 0:
		return unix.EOPNOTSUPP
	case mode.AutoMask != 0 && len(p.QPCounters) > 0:
		return unix.EBUSY
	case mode.AutoMask != 0:
		p.Mode = mode
	case p.Mode.Mode != autoMode:
		return unix.EINVAL
	case len(p.QPCounters) > 0:
		p.Mode = rdmanl.CounterMode{Mode: manualMode}
	default:
		p.Mode = rdmanl.CounterMode{Mode: noMode}
	}
	return 0
}

// bind binds a queue pair to a counter set, to a new one for the ID 0, and
// returns its ID (rdma_counter_bind_qpn and rdma_counter_bind_qpn_alloc).
func (h *HCA) bind(port int, qpn, id uint32) (uint32, unix.Errno) {
	p, qp := h.Ports[port], h.qp(qpn)
	switch {
	case p == nil || p.Counters == nil:
		return 0, unix.EOPNOTSUPP
	case p.Mode.Mode == autoMode:
		return 0, unix.EINVAL
	case qp == nil:
		return 0, unix.ENOENT
	case qp.Port != 0 && qp.Port != port, p.setOf(qpn) >= 0:
		return 0, unix.EINVAL
	case id == 0:
		p.Mode = rdmanl.CounterMode{Mode: manualMode}
		return h.bindNew(p, rdmanl.QPCounter{Port: port, Mode: manualMode}, qpn), 0
	}
	i := slices.IndexFunc(p.QPCounters, func(c rdmanl.QPCounter) bool { return c.ID == id })
	if i < 0 {
		return 0, unix.ENOENT
	}
	other := h.qp(p.QPCounters[i].QPNs[0])
	if other != nil && (other.KernelName == "") != (qp.KernelName == "") {
		return 0, unix.EINVAL
	}
	p.join(i, qpn)
	return id, 0
}

// unbind takes a queue pair from a counter set (rdma_counter_unbind_qpn).
func (h *HCA) unbind(port int, qpn, id uint32) unix.Errno {
	if h.qp(qpn) == nil {
		return unix.ENOENT
	}
	p := h.Ports[port]
	if p == nil || p.Mode.Mode == autoMode {
		return unix.EINVAL
	}
	i := p.setOf(qpn)
	if i < 0 || p.QPCounters[i].ID != id {
		return unix.EINVAL
	}
	p.leave(i, qpn)
	return 0
}

func (h *HCA) qp(number uint32) *rdmanl.QP {
	i := slices.IndexFunc(h.QPs, func(qp rdmanl.QP) bool { return qp.Number == number })
	if i < 0 {
		return nil
	}
	return &h.QPs[i]
}

// switchOptional switches the optional counters with some indexes on, and all
// others off.
func (p *HCAPort) switchOptional(indexes []uint32) unix.Errno {
	if p.Counters == nil {
		return unix.EINVAL
	}
	counters := slices.Clone(p.Counters)
	for _, i := range indexes {
		if int(i) >= len(counters) || !counters[i].Optional {
			return unix.EINVAL
		}
	}
	for i := range counters {
		if counters[i].Optional {
			counters[i].Enabled = slices.Contains(indexes, uint32(i))
		}
	}
	p.Counters = counters
	return 0
}
