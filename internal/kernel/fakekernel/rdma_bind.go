package fakekernel

import (
	"encoding/binary"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// setCounters changes how a port counts (nldev_stat_set_doit).
func (k *Kernel) setCounters(q question) answer {
	p, errno := k.hcaPort(q)
	if errno != 0 {
		return answer{errno: errno}
	}
	mode, hasMode := number(q.body, rdmanl.AttrStatMode)
	table := find(q.body, rdmanl.AttrStatHWCounters)
	switch resource, _ := number(q.body, rdmanl.AttrStatRes); {
	case table != nil:
		if errno := p.switchOptional(switched(table)); errno != 0 {
			return answer{errno: errno}
		}
		return k.counterChanged(q)
	case !hasMode || resource != rdmanl.AttrResQP:
		return answer{errno: unix.EINVAL}
	case mode == counterModes[autoMode]:
		if errno := p.setMode(requestedMode(q.body)); errno != 0 {
			return answer{errno: errno}
		}
		return k.counterChanged(q)
	}
	return k.bindQP(q)
}

// switched returns the indexes of counters in a table.
func switched(table []byte) (indexes []uint32) {
	for _, at := range places(table, rdmanl.AttrStatHWCounterIndex) {
		indexes = append(indexes, binary.NativeEndian.Uint32(table[at:]))
	}
	return indexes
}

func requestedMode(b []byte) rdmanl.CounterMode {
	mode := rdmanl.CounterMode{Mode: autoMode}
	mode.AutoMask, _ = number(b, rdmanl.AttrStatAutoModeMask)
	mode.ByType, mode.ByPID = mode.AutoMask&maskQPType != 0, mode.AutoMask&maskPID != 0
	optional := find(b, rdmanl.AttrStatOpCounterEnabled)
	mode.Optional = new(len(optional) == 1 && optional[0] != 0)
	return mode
}

func (k *Kernel) bindQP(q question) answer {
	qpn, ok := number(q.body, rdmanl.AttrResLQPN)
	if !ok {
		return answer{errno: unix.EINVAL}
	}
	id, _ := number(q.body, rdmanl.AttrStatCounterID)
	id, errno := k.hca(q).bind(q.number, qpn, id)
	if errno != 0 {
		return answer{errno: errno}
	}
	return k.counterChanged(q, rdmanl.AttrStatCounterID, id, rdmanl.AttrResLQPN, qpn)
}

// deleteCounter unbinds a queue pair (nldev_stat_del_doit).
func (k *Kernel) deleteCounter(q question) answer {
	resource, _ := number(q.body, rdmanl.AttrStatRes)
	id, hasID := number(q.body, rdmanl.AttrStatCounterID)
	qpn, hasQPN := number(q.body, rdmanl.AttrResLQPN)
	_, errno := k.hcaPort(q)
	if errno != 0 || resource != rdmanl.AttrResQP || !hasID || !hasQPN {
		return answer{errno: unix.EINVAL}
	}
	if errno := k.hca(q).unbind(q.number, qpn, id); errno != 0 {
		return answer{errno: errno}
	}
	return k.counterChanged(q, rdmanl.AttrStatCounterID, id, rdmanl.AttrResLQPN, qpn)
}

// counterChanged is the answer to a change, with pairs of an attribute and its
// value.
func (k *Kernel) counterChanged(q question, pairs ...uint32) (a answer) {
	k.forget(rdmaDevice, q.object)
	d := k.device(q)
	a.add(q.object, encode(func(ae *netlink.AttributeEncoder) {
		putHandle(ae, d, q.number)
		for i := 0; i < len(pairs); i += 2 {
			ae.Uint32(uint16(pairs[i]), pairs[i+1])
		}
	}))
	return a
}
