package simulation

import (
	"sync/atomic"
	"time"
)

// load is what went through something by a moment.
type load struct {
	rxBytes, txBytes     uint64 // of RDMA, multiples of 4 as ports count in words
	rxPackets, txPackets uint64 // of RDMA, with acknowledgements
	rxWrites, rxReads    uint64 // requests of peers
	rxAtomics, rxSends   uint64
	txWrites, txReads    uint64 // requests to peers
}

// each changes all numbers of a load, given those of another.
func (l *load) each(o load, change func(own *uint64, other uint64)) {
	for _, n := range []struct {
		own   *uint64
		other uint64
	}{
		{&l.rxBytes, o.rxBytes},
		{&l.txBytes, o.txBytes},
		{&l.rxPackets, o.rxPackets},
		{&l.txPackets, o.txPackets},
		{&l.rxWrites, o.rxWrites},
		{&l.rxReads, o.rxReads},
		{&l.rxAtomics, o.rxAtomics},
		{&l.rxSends, o.rxSends},
		{&l.txWrites, o.txWrites},
		{&l.txReads, o.txReads},
	} {
		change(n.own, n.other)
	}
}

func (l *load) add(o load) { l.each(o, func(own *uint64, other uint64) { *own += other }) }

// since returns what came after an earlier load.
func (l load) since(earlier load) load {
	l.each(earlier, func(own *uint64, other uint64) { *own -= min(*own, other) })
	return l
}

// part returns one of some equal parts.
func (l load) part(parts uint64) load {
	l.each(load{}, func(own *uint64, _ uint64) { *own /= parts })
	return l
}

// volumes is all that counters are made of.
type volumes struct {
	own     load    // of the function
	port    load    // of all functions of the card
	seconds float64 // since the start of the scenario
	card    *card
}

// Of the messages of a job, one in readsOf is an RDMA READ, one in sendsOf a
// SEND and one in atomicsOf an ATOMIC; the others are WRITEs.
const (
	readsOf   = 64
	sendsOf   = 256
	atomicsOf = 1024
)

// source is one origin of traffic on a function: a pod, or the host.
type source struct {
	pod               *Pod    // nil for the host
	receive, transmit float64 // bytes a busy second
	message           float64 // bytes
	flow              flow

	run    *run // of a pod of a real node; nil for all others
	past   load // what went before the flow began
	isIdle bool // the flow has ended, and may begin again
}

// load returns what the source has brought by a moment.
func (s *source) load(t time.Duration, payload uint64) load {
	l := s.past
	if !s.isIdle {
		l.add(s.flowed(t, payload))
	}
	return l
}

// flowed returns what the flow has brought.
func (s *source) flowed(t time.Duration, payload uint64) load {
	busy := s.flow.seconds(t)
	l := load{rxBytes: uint64(s.receive*busy) &^ 3, txBytes: uint64(s.transmit*busy) &^ 3}
	received, sent := uint64(float64(l.rxBytes)/s.message), uint64(float64(l.txBytes)/s.message)
	l.rxPackets = l.rxBytes/payload + sent // each message that went is acknowledged once
	l.txPackets = l.txBytes/payload + received
	l.rxReads, l.rxSends, l.rxAtomics = received/readsOf, received/sendsOf, received/atomicsOf
	l.rxWrites = received - l.rxReads - l.rxSends - l.rxAtomics
	l.txReads = sent / readsOf
	l.txWrites = sent - l.txReads
	return l
}

// growth is what a counter grows by beside its volume.
type growth struct {
	start float64
	rate  float64 // a second
	flow  flow
	full  *schedule // from its first time on, the counter is full; nil for never
	count window    // each time counts; nil for none
	each  uint64    // as much
	level uint64    // what it adds while it is, and takes away after
	crowd *crowd    // what level and each are of, in place of times; nil for none
}

// crowd is how many of something there are, which no scenario tells.
type crowd struct{ now, ever atomic.Uint64 }

func (c *crowd) join()  { c.now.Add(1); c.ever.Add(1) }
func (c *crowd) leave() { c.now.Add(^uint64(0)) }

// value returns what it adds by t, and whether the counter is full.
func (g *growth) value(t time.Duration) (added uint64, isFull bool) {
	if g.crowd != nil {
		return g.crowd.now.Load()*g.level + g.crowd.ever.Load()*g.each, false
	}
	added = uint64(g.start)
	if g.rate > 0 {
		added = uint64(g.start + g.rate*g.flow.seconds(t))
	}
	if g.count != nil {
		turns, _ := g.count.turn(t)
		added += uint64(turns) * g.each
	}
	if _, active := g.flow.times.turn(t); active {
		added += g.level
	}
	if g.full != nil {
		turns, _ := g.full.turn(t)
		isFull = turns > 0
	}
	return added, isFull
}

// limit fits a value into a counter of some bits, which then begins anew or
// stays full.
func (r *row) limit(v uint64) uint64 {
	if r.bits >= 64 {
		return v
	}
	most := uint64(1)<<r.bits - 1
	if r.saturates {
		return min(v, most)
	}
	return v & most
}
