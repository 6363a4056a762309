package attribution

import (
	"iter"
	"maps"
	"slices"
)

// Value is what a counter of a device has come to. F names the counter.
type Value[F comparable] struct {
	Family F
	Value  uint64
}

// Account adds up, for each pod and device, what a device counted while it was
// the pod's. It is pure, and not safe for concurrent use; devices that are
// sampled apart may have an Account each.
//
// A pass over a device is: [Account.Hold] says whose it is now and
// [Account.Keep] who else uses it, [Account.Observe] and
// [Account.ObserveCounters] give what it counts, and [Account.EndPass] closes
// the pass.
//
// What a counter gained between two observations is a pod's if Hold named that
// pod by the same method at both and at every pass in between, so that nothing
// from before or after the pod, or from a pass with a second user, is counted.
// A second user that comes and goes between two passes is not seen: what it
// moved then is counted as the sole user's. A counter that fell was reset: what it gained since is not counted. So the
// totals of the pods that held a device never exceed what it gained. What
// counter sets counted apart is not counted again, so that the totals of a pod
// by all methods can be added up.
type Account[F comparable] struct {
	isBytes func(F) bool
	pass    uint64
	devices map[string]*holding
	sources map[source]*history[F]
	sets    map[counterSet]*history[F]
	dumped  map[counterPort]*dump[F]
	lines   map[lineKey]*Line[F]
	users   map[user]uint64 // last pass in which a pod used a device
}

// passesKept is for how many passes what is not seen any more is kept: pods
// that are no users, devices that are not observed.
const passesKept = 60

// holding is whose a device is.
type holding struct {
	pod      *Pod
	method   Method
	since    uint64 // number of the holding; changes with the pod and the method
	seen     uint64 // last pass
	coverage coverage
}

// source is what is observed together.
type source struct {
	device string
	port   int
	group  int
}

// user is a pod on a device.
type user struct {
	device string
	pod    podKey
}

// NewAccount returns an empty Account. isBytes tells which counters count
// bytes, of which [Account.Coverage] is a share; each byte should be in one of
// them.
func NewAccount[F comparable](isBytes func(F) bool) *Account[F] {
	return &Account[F]{
		isBytes: isBytes,
		devices: map[string]*holding{},
		sources: map[source]*history[F]{},
		sets:    map[counterSet]*history[F]{},
		dumped:  map[counterPort]*dump[F]{},
		lines:   map[lineKey]*Line[F]{},
		users:   map[user]uint64{},
	}
}

// Hold says, once a pass, whose a device is from now on; pod is nil where it is
// nobody's alone. Method is [Exclusive] or [SoleUser]. A pod that loses a device that it
// had for itself is forgotten there, and starts anew if it comes back. One that
// gets for itself what it used before begins anew too: its totals by other
// methods end.
func (a *Account[F]) Hold(device string, pod *Pod, method Method) {
	if pod == nil {
		method = ""
	}
	h := a.device(device)
	if keyOf(h.pod) != keyOf(pod) || h.method != method {
		if h.method == Exclusive {
			a.forget(device, h.pod)
		}
		if method == Exclusive {
			a.forget(device, pod)
		}
		h.since++
	}
	h.pod, h.method = pod, method
	a.Keep(device, pod)
}

// Keep says that a pod still uses a device, so that its totals stay.
func (a *Account[F]) Keep(device string, pod *Pod) {
	if pod != nil {
		a.users[user{device, keyOf(pod)}] = a.pass
	}
}

// Observe tells what the counters of a port, or of the whole device with port
// 0, are now. Counters that are read together are a group; a group is observed
// with the same counters each time, best in the same order.
func (a *Account[F]) Observe(device string, port, group int, values []Value[F]) {
	h := a.device(device)
	past, _ := entry(a.sources, source{device, port, group})
	var line *Line[F]
	if h.pod != nil {
		line = a.line(device, port, h.pod, h.method)
	}
	counts := line != nil && past.since == h.since
	apart := a.dumped[counterPort{device, port}]
	for i, v := range values {
		all := past.gained(i, v)
		gained := all - apart.take(v.Family, all)
		if !counts {
			gained = 0
		}
		if a.isBytes(v.Family) {
			h.coverage.now.all += all
			h.coverage.now.held += gained
		}
		line.add(v.Family, gained)
	}
	past.keep(values, h.since, a.pass)
}

// EndPass closes a pass, and forgets pods, devices and counters that were not
// seen for some passes. A pass is an interval of the most frequent sampling.
func (a *Account[F]) EndPass() {
	isOld := func(seen uint64) bool { return seen+passesKept < a.pass }
	for device, h := range a.devices {
		if h.coverage.endPass(); isOld(h.seen) {
			delete(a.devices, device)
		}
	}
	maps.DeleteFunc(a.users, func(_ user, seen uint64) bool { return isOld(seen) })
	maps.DeleteFunc(a.dumped, func(_ counterPort, d *dump[F]) bool { return isOld(d.seen) })
	maps.DeleteFunc(a.sources, func(_ source, h *history[F]) bool { return isOld(h.seen) })
	maps.DeleteFunc(a.sets, func(_ counterSet, h *history[F]) bool { return isOld(h.seen) })
	maps.DeleteFunc(a.lines, func(key lineKey, l *Line[F]) bool {
		return isOld(max(l.seen, a.users[user{key.device, key.pod}]))
	})
	a.pass++
}

// Coverage returns which share of the bytes that a device counted in the last
// passes is some pod's, from 0 to 1; ok is false where it counted none. What is
// missing is the host's, of several users at a time, or of the moments in which
// a device changed hands.
func (a *Account[F]) Coverage(device string) (ratio float64, ok bool) {
	h := a.devices[device]
	if h == nil {
		return 0, false
	}
	return h.coverage.ratio()
}

// Lines returns the totals of all pods, in no order. A Line stays the same as
// long as its pod is not forgotten.
func (a *Account[F]) Lines() iter.Seq[*Line[F]] { return maps.Values(a.lines) }

func (a *Account[F]) device(name string) *holding {
	h, isNew := entry(a.devices, name)
	if isNew {
		h.since = 1
	}
	h.seen = a.pass
	return h
}

// forget drops what a pod had of a device, by any method.
func (a *Account[F]) forget(device string, pod *Pod) {
	maps.DeleteFunc(a.lines, func(key lineKey, _ *Line[F]) bool { return key.device == device && key.pod == keyOf(pod) })
}

// history is what counters were when they were last observed.
type history[F comparable] struct {
	values []Value[F]
	since  uint64 // the holding then
	seen   uint64 // the pass
	pod    *Pod   // of a counter set: whose it is
	isNew  bool   // of a counter set: it began from zero while it was watched
}

// gained returns by how much a counter grew; i is where it likely stands.
func (h *history[F]) gained(i int, v Value[F]) uint64 {
	if i >= len(h.values) || h.values[i].Family != v.Family {
		i = slices.IndexFunc(h.values, func(old Value[F]) bool { return old.Family == v.Family })
	}
	switch {
	case i < 0 && h.isNew:
		return v.Value
	case i < 0 || v.Value < h.values[i].Value:
		return 0
	}
	return v.Value - h.values[i].Value
}

func (h *history[F]) keep(values []Value[F], since, pass uint64) {
	h.values = append(h.values[:0], values...)
	h.since, h.seen = since, pass
}
