package fakekernel

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// statisticsQuestion tells apart what RDMA_NLDEV_CMD_STAT_GET asks for.
func statisticsQuestion(m netlink.Message) rdmaQuestion {
	resource, hasResource := number(m.Data, rdmanl.AttrStatRes)
	switch {
	case !hasResource:
		return rdmaQuestion{request: GetStatistics, answer: (*Kernel).statistics}
	case resource != rdmanl.AttrResQP:
		return rdmaQuestion{request: GetQPCounters, answer: always(unix.EINVAL)}
	case find(m.Data, rdmanl.AttrStatMode) != nil:
		return rdmaQuestion{request: GetCounterMode, answer: (*Kernel).counterMode}
	}
	return rdmaQuestion{request: GetQPCounters, answer: (*Kernel).qpCounters}
}

// statistics says what a port counts, but for counters that are off.
func (k *Kernel) statistics(q question) (a answer) {
	p, errno := k.hcaPort(q)
	if errno != 0 || p.Counters == nil {
		return answer{errno: unix.EINVAL}
	}
	var names []string
	t := &template{names: len(p.Counters)}
	for i, c := range p.Counters {
		if c.Enabled || !c.Optional {
			names, t.indexes = append(names, c.Name), append(t.indexes, i)
		}
	}
	d := k.device(q)
	t.encode(func(ae *netlink.AttributeEncoder) {
		putHandle(ae, d, q.number)
		putCounters(ae, names)
	}, rdmanl.AttrStatHWCounters, rdmanl.AttrStatHWCounterEntry, rdmanl.AttrStatHWCounterEntryValue)
	values := p.Values
	a.addLive(q.object, func() []byte { return t.fill(k, values) })
	return a
}

// putCounters encodes counters, whose values come later.
func putCounters(ae *netlink.AttributeEncoder, names []string) {
	nest(ae, rdmanl.AttrStatHWCounters, func(ae *netlink.AttributeEncoder) {
		for _, name := range names {
			nest(ae, rdmanl.AttrStatHWCounterEntry, func(ae *netlink.AttributeEncoder) {
				ae.String(rdmanl.AttrStatHWCounterEntryName, name)
				ae.Uint64(rdmanl.AttrStatHWCounterEntryValue, 0)
			})
		}
	})
}

// counterStatuses says of all counters of a port whether they are on.
func (k *Kernel) counterStatuses(q question) (a answer) {
	p, errno := k.hcaPort(q)
	if errno != 0 || p.Counters == nil {
		return answer{errno: unix.EINVAL}
	}
	d := k.device(q)
	a.add(q.object, encode(func(ae *netlink.AttributeEncoder) {
		putHandle(ae, d, q.number)
		nest(ae, rdmanl.AttrStatHWCounters, func(ae *netlink.AttributeEncoder) {
			for i, c := range p.Counters {
				nest(ae, rdmanl.AttrStatHWCounterEntry, func(ae *netlink.AttributeEncoder) {
					ae.String(rdmanl.AttrStatHWCounterEntryName, c.Name)
					ae.Uint32(rdmanl.AttrStatHWCounterIndex, uint32(i))
					if c.Optional {
						ae.Uint8(rdmanl.AttrStatHWCounterDynamic, boolByte(c.Enabled))
					}
				})
			}
		})
	}))
	return a
}

// counterMode says how QPs of a port are bound to counters.
func (k *Kernel) counterMode(q question) (a answer) {
	p, errno := k.hcaPort(q)
	if errno != 0 {
		return answer{errno: errno}
	}
	d := k.device(q)
	a.add(q.object, encode(func(ae *netlink.AttributeEncoder) {
		putHandle(ae, d, q.number)
		ae.Uint32(rdmanl.AttrStatMode, numberOf(counterModes, p.Mode.Mode))
		if p.Mode.Mode == autoMode {
			ae.Uint32(rdmanl.AttrStatAutoModeMask, maskOf(p.Mode))
			putBool(ae, rdmanl.AttrStatOpCounterEnabled, p.Mode.Optional)
		}
	}))
	return a
}

// Modes of rdmanl.CounterMode.
const (
	noMode     = "none"
	autoMode   = "auto"
	manualMode = "manual"
)

// Bits of enum rdma_nl_counter_mask.
const (
	maskQPType = 1 << 0
	maskPID    = 1 << 1
)

// maskOf returns the mask of a mode whose bits may be said by name alone.
func maskOf(m rdmanl.CounterMode) uint32 {
	mask := m.AutoMask
	if m.ByType {
		mask |= maskQPType
	}
	if m.ByPID {
		mask |= maskPID
	}
	return mask
}

// qpCounters dumps the counter sets of a port, each in a message of its own.
func (k *Kernel) qpCounters(q question) (a answer) {
	p, errno := k.hcaPort(q)
	if errno != 0 {
		return answer{errno: errno}
	}
	d := k.device(q)
	for _, c := range p.QPCounters {
		t := &template{names: len(p.QPNames)}
		t.encode(func(ae *netlink.AttributeEncoder) {
			putHandle(ae, d, q.number)
			nest(ae, rdmanl.AttrStatCounter, func(ae *netlink.AttributeEncoder) {
				nest(ae, rdmanl.AttrStatCounterEntry, func(ae *netlink.AttributeEncoder) { putQPCounter(ae, p, c) })
			})
		}, rdmanl.AttrStatCounter, rdmanl.AttrStatCounterEntry,
			rdmanl.AttrStatHWCounters, rdmanl.AttrStatHWCounterEntry, rdmanl.AttrStatHWCounterEntryValue)
		var values func([]uint64)
		if ask := p.QPValues; ask != nil {
			values = func(dst []uint64) { ask(c, dst) }
		}
		a.addLive(q.object, func() []byte { return t.fill(k, values) })
	}
	return a
}

func putQPCounter(ae *netlink.AttributeEncoder, p *HCAPort, c rdmanl.QPCounter) {
	ae.Uint32(rdmanl.AttrPortIndex, uint32(c.Port))
	ae.Uint32(rdmanl.AttrStatCounterID, c.ID)
	ae.Uint32(rdmanl.AttrStatMode, numberOf(counterModes, c.Mode))
	putEnum(ae, rdmanl.AttrResType, qpTypes, c.QPType)
	putOwner(ae, c.Owner)
	nest(ae, rdmanl.AttrResQP, func(ae *netlink.AttributeEncoder) {
		for _, qpn := range c.QPNs {
			nest(ae, rdmanl.AttrResQPEntry, func(ae *netlink.AttributeEncoder) { ae.Uint32(rdmanl.AttrResLQPN, qpn) })
		}
	})
	putCounters(ae, p.QPNames)
}
