package attribution

// CounterSet is what a set of counters has come to that the queue pairs of one
// pod are bound to.
type CounterSet[F comparable] struct {
	ID     uint32
	Pod    *Pod // nil where that cannot be told any more: it stays whose it was
	Values []Value[F]
}

// counterPort is a port whose counter sets are dumped.
type counterPort struct {
	device string
	port   int
}

// dump is what is known of a port from the dumps of its counter sets.
type dump[F comparable] struct {
	seen  uint64       // the last pass
	apart map[F]uint64 // what pods' sets gained that was not seen in the port's own counters yet
}

func (d *dump[F]) add(family F, gained uint64) {
	if d.apart == nil {
		d.apart = map[F]uint64{}
	}
	d.apart[family] += gained
}

// take returns how much of what the port gained was counted apart. There may be
// no dump, which is nil.
func (d *dump[F]) take(family F, gained uint64) uint64 {
	if d == nil || d.apart[family] == 0 {
		return 0
	}
	taken := min(gained, d.apart[family])
	d.apart[family] -= taken
	return taken
}

// counterSet is a counter set of a port.
type counterSet struct {
	counterPort
	id uint32
}

// ObserveCounters tells all counter sets of a port. Their totals are of the
// method [QPCounter].
//
// Sets of the first dump count from what they are then. One that is new in a
// later dump began at zero, and so did one that counts less than before or is
// another pod's: the hardware gives the number of a set that ended to the next.
// A counter that stood just below 32 bits has wrapped.
// What a set counted between the last dump and its end cannot be known: the
// kernel folds it into the counters of the port.
func (a *Account[F]) ObserveCounters(device string, port int, sets []CounterSet[F]) {
	h := a.device(device)
	where := counterPort{device, port}
	dumped, isFirst := entry(a.dumped, where)
	dumped.seen = a.pass
	there := map[uint32]bool{}
	for _, set := range sets {
		there[set.ID] = true
		past := a.sets[counterSet{where, set.ID}]
		if past == nil || set.Pod != nil && keyOf(past.pod) != keyOf(set.Pod) || fell(past.values, set.Values) {
			past = &history[F]{isNew: !isFirst, pod: a.podOf(past, set.Pod)}
			a.sets[counterSet{where, set.ID}] = past
		}
		if set.Pod != nil {
			past.pod = set.Pod
		}
		if past.pod != nil {
			a.addSet(h, where, past, set.Values)
		}
		past.keep(set.Values, h.since, a.pass)
	}
	for key := range a.sets {
		if key.counterPort == where && !there[key.id] {
			delete(a.sets, key)
		}
	}
}

// podOf returns whose a set is that takes the place of past.
func (a *Account[F]) podOf(past *history[F], pod *Pod) *Pod {
	if pod == nil && past != nil {
		return past.pod
	}
	return pod
}

func (a *Account[F]) addSet(h *holding, where counterPort, past *history[F], values []Value[F]) {
	line := a.line(where.device, where.port, past.pod, QPCounter)
	for i, v := range values {
		gained := past.gained(i, v) + past.wrapped(i, v)
		if a.isBytes(v.Family) {
			h.coverage.now.held += gained
		}
		line.add(v.Family, gained)
		a.dumped[where].add(v.Family, gained)
	}
}

// fell tells whether a counter is less than it was.
func fell[F comparable](before, now []Value[F]) bool {
	past := history[F]{values: before}
	for i, v := range now {
		if i >= len(before) || before[i].Family != v.Family {
			continue
		}
		if v.Value < before[i].Value && past.wrapped(i, v) == 0 {
			return true
		}
	}
	return false
}

// A counter that is 32 bits wide and stood close to what fits wraps soon. None
// that is known grows by as much in less than some seconds.
const (
	narrow = 1 << 32
	nearly = 1 << 28
)

// wrapped returns by how much a counter of a set grew that fell because it is
// 32 bits wide; 0 where it did not fall, or began anew with its set.
func (h *history[F]) wrapped(i int, v Value[F]) uint64 {
	if i >= len(h.values) || h.values[i].Family != v.Family {
		return 0
	}
	before := h.values[i].Value
	if before >= narrow || before < narrow-nearly || v.Value >= nearly {
		return 0
	}
	return narrow - before + v.Value
}
