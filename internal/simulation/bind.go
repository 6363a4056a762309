package simulation

import (
	"slices"
	"time"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// bind gives the queue pairs of each process that uses a device a set of
// counters, where the card binds them.
func (m *machine) bind(f *function, h *fakekernel.HCA) {
	port := h.Ports[1]
	if port == nil || f.card.spec.QPCounters != bindPID {
		return
	}
	port.Mode = rdmanl.CounterMode{Mode: "auto", AutoMask: 1 << 1, ByPID: true, Optional: new(false)}
	port.QPCounters = nil
	pods := map[int]*run{}
	for _, r := range m.runs {
		if !slices.Contains(r.functions, f) || r.pod.QueuePairs == 0 {
			continue
		}
		for _, pid := range r.users {
			pods[pid] = r
			set := rdmanl.QPCounter{ID: uint32(len(port.QPCounters) + 1), Port: 1, Mode: "auto", Owner: rdmanl.Owner{PID: pid}}
			for _, qp := range h.QPs {
				if qp.PID == pid {
					set.QPNs = append(set.QPNs, qp.Number)
				}
			}
			port.QPCounters = append(port.QPCounters, set)
		}
	}
	var counters []counter
	port.QPNames = nil
	for _, c := range f.hardware {
		if !c.pf && !c.isOff {
			counters = append(counters, c)
			port.QPNames = append(port.QPNames, c.name)
		}
	}
	port.QPValues = func(set rdmanl.QPCounter, dst []uint64) { m.share(f, pods[set.PID], counters, dst) }
}

// share computes what the queue pairs of one process of a pod have counted: its
// part of the pod's traffic, and none of the errors that a scenario gives the
// device.
func (m *machine) share(f *function, r *run, counters []counter, dst []uint64) {
	clear(dst)
	now := m.moment()
	own, ok := f.loadOf(r, now)
	if !ok {
		return
	}
	v := &volumes{own: own.part(uint64(len(r.users))), seconds: now.Seconds(), card: f.card}
	for j := range dst {
		if counters[j].row.value != nil {
			dst[j] = counters[j].limit(counters[j].row.value(v))
		}
	}
}

// loadOf returns what went through the function for a pod since that began.
func (f *function) loadOf(r *run, now time.Duration) (l load, ok bool) {
	f.card.mu.Lock()
	defer f.card.mu.Unlock()
	i := slices.IndexFunc(f.sources, func(s *source) bool { return r != nil && s.pod == r.pod && (s.run == nil || s.run == r) })
	if i < 0 {
		return load{}, false
	}
	l = f.sources[i].load(now, f.card.payload)
	if f.sources[i].run == nil {
		l = l.since(f.sources[i].load(r.begun, f.card.payload))
	}
	return l, true
}
