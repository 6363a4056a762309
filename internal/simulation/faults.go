package simulation

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/devlink"
	"railhead/internal/kernel/fakekernel"
)

// changePorts brings the state of all ports to a moment, and says what changed.
func (m *machine) changePorts(t time.Duration) {
	for _, c := range m.cards {
		state := c.at(t)
		if state == c.state {
			continue
		}
		c.state = state
		for _, f := range c.functions {
			m.tell(f)
		}
	}
}

// fault is how a kernel treats a kind of request about some objects.
type fault struct {
	errno   unix.Errno
	delay   time.Duration
	objects []int
}

// changeFaults has each kernel refuse and delay what it is to at a moment.
func (m *machine) changeFaults(t time.Duration) {
	for _, n := range append([]*namespace{m.host}, m.spaces...) {
		refused, delayed := m.faults(n, t)
		n.apply(&n.refused, refused, func(r fakekernel.Request, f fault) { n.kernel.Refuse(r, f.errno, f.objects...) })
		n.apply(&n.delayed, delayed, func(r fakekernel.Request, f fault) { n.kernel.Delay(r, f.delay, f.objects...) })
	}
}

// apply applies those faults that differ from the present ones.
func (n *namespace) apply(now *map[fakekernel.Request]fault, next map[fakekernel.Request]fault, set func(fakekernel.Request, fault)) {
	for r := range *now {
		if _, ok := next[r]; !ok {
			set(r, fault{})
		}
	}
	for r, f := range next {
		if old, ok := (*now)[r]; !ok || old.errno != f.errno || old.delay != f.delay || !slices.Equal(old.objects, f.objects) {
			set(r, f)
		}
	}
	*now = maps.Clone(next)
}

// faults returns what a kernel refuses and delays at a moment.
func (m *machine) faults(n *namespace, t time.Duration) (refused, delayed map[fakekernel.Request]fault) {
	refused, delayed = map[fakekernel.Request]fault{}, map[fakekernel.Request]fault{}
	for i := range m.scenario.Events {
		e := &m.scenario.Events[i]
		if _, active := e.schedule().turn(t); !active {
			continue
		}
		switch e.Do {
		case doRefuse:
			m.addFault(refused, n, e, fault{errno: errnos[e.Errno]})
		case doBlock:
			m.addFault(delayed, n, e, fault{delay: e.Delay.Duration})
		}
	}
	return refused, delayed
}

// addFault adds the functions of an event that are in a namespace.
func (m *machine) addFault(faults map[fakekernel.Request]fault, n *namespace, e *Event, by fault) {
	for _, f := range m.functions() {
		if !slices.Contains(e.Devices, f.id) {
			continue
		}
		if f.place == n {
			for _, r := range requests[e.Request].rdma {
				by.objects = append(slices.Clone(faults[r].objects), int(f.index))
				faults[r] = by
			}
		}
		if f.netPlace == n {
			for _, r := range requests[e.Request].link {
				by.objects = append(slices.Clone(faults[r].objects), f.link)
				faults[r] = by
			}
		}
	}
}

// addReporters adds the health reporters of a card, which only mlx5 has here.
func (m *machine) addReporters(c *card) {
	if c.driver.net != "mlx5_core" {
		return
	}
	m.host.kernel.Change(func(k *fakekernel.Facts) {
		for _, f := range c.functions {
			for _, name := range []string{"fw", "fw_fatal", "vnic"} {
				if f.vf >= 0 && name == "fw_fatal" {
					continue
				}
				reporter := fakekernel.Reporter{Reporter: devlink.Reporter{Bus: "pci", Device: f.pci, Name: name}}
				if name == "vnic" {
					reporter.Names = vnicCounters
				}
				k.Devlink = append(k.Devlink, reporter)
			}
		}
	})
}
