package modeltest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"railhead/internal/ipam/holder"
)

// A podRun is what a kubelet knows of a pod on its machine.
type podRun struct {
	m         *machine
	pod       *podObject
	sandbox   string // of the latest ADD
	made      int
	tries     int
	busy      bool // a CNI request is under way
	running   bool
	ending    bool
	toDelete  []string // sandboxes whose DEL is to be done
	answer    *holder.Assignment
	losses    int // of journals, before the answer
	lastError error
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// interrupted is what the runtime sees when the agent dies on it.
func (r *podRun) interrupted() {
	if !r.busy {
		return
	}
	r.busy = false
	if r.ending || r.running || slices.Contains(r.toDelete, r.sandbox) {
		return
	}
	if r.m.box(r.sandbox) != nil || r.m.w.chance(50) { // it begins anew, and cleans up some time
		r.abandon()
	}
}

func (r *podRun) abandon() {
	if r.sandbox != "" {
		r.toDelete = append(r.toDelete, r.sandbox)
		r.sandbox = ""
	}
	r.running, r.answer = false, nil
}

// kubelet lets a machine's kubelet do one thing.
func (m *machine) kubelet() {
	if !m.on {
		return
	}
	if !m.agent.cut && !m.w.api.down && !m.frozen {
		m.pods.some(m.w.rng, m.w.calm)
		m.learn()
	}
	if len(m.runs) == 0 {
		return
	}
	m.runs[m.w.rng.IntN(len(m.runs))].act()
}

// learn takes over what pods there are from the API.
func (m *machine) learn() {
	for _, name := range sorted(m.pods.live) {
		pod := m.pods.live[name]
		if pod.nodeUID != m.uid || slices.ContainsFunc(m.runs, func(r *podRun) bool { return r.pod.uid == pod.uid }) {
			continue
		}
		if pod.ending {
			m.forget(pod)
			continue
		}
		r := &podRun{m: m, pod: pod}
		m.runs = append(m.runs, r)
		if h := m.holder; h != nil && m.w.chance(30) {
			m.notices = append(m.notices, func() { h.Expect(r.request()) })
		}
	}
	for _, r := range m.runs {
		now := m.pods.live[r.pod.name.String()]
		if now == nil || now.uid != r.pod.uid || now.ending {
			r.ending = true
		}
	}
}

// forget says that a pod is gone from its machine.
func (m *machine) forget(pod *podObject) {
	m.runs = slices.DeleteFunc(m.runs, func(r *podRun) bool { return r.pod.uid == pod.uid })
	if now := m.w.api.pods.live[pod.name.String()]; now != nil && now.uid == pod.uid {
		m.w.api.pods.remove(pod.name.String())
	}
}

func (r *podRun) request() holder.Request {
	return holder.Request{
		Key: holder.Key{PodUID: r.pod.uid, Sandbox: r.sandbox},
		Pod: r.pod.name, Identity: r.pod.identity, Migration: r.pod.migration, NICs: r.pod.nics,
		Settle: r.tries > 3,
	}
}

// act is the kubelet's next step with a pod.
func (r *podRun) act() {
	m, w := r.m, r.m.w
	if r.busy || m.holder == nil {
		return
	}
	switch {
	case r.ending && r.sandbox != "":
		r.abandon()
	case len(r.toDelete) > 0 && (r.ending || r.running || w.chance(50)):
		r.del()
	case r.ending:
		h := m.holder
		m.notices = append(m.notices, func() { h.Abandon(holder.Key{PodUID: r.pod.uid}) })
		m.forget(r.pod)
	case m.frozen && !r.running:
	case !r.running:
		r.add()
	case w.rarely(12) && !w.calm:
		w.seen("repeated ADD")
		r.add()
	case w.rarely(12) && !w.calm && !m.frozen:
		w.seen("ADD with a new sandbox")
		r.renew()
	}
}

// renew makes a new sandbox for a pod; the old one dies first, its DEL comes
// before, after or twice.
func (r *podRun) renew() {
	old := r.sandbox
	r.m.tearDown(old)
	r.abandon()
	if r.m.w.chance(50) {
		r.toDelete = nil
		r.add()
		r.toDelete = []string{old}
		r.m.w.seen("late DEL")
	}
}

func (r *podRun) add() {
	if r.sandbox == "" {
		for _, id := range r.toDelete { // their DEL may be yet to come, their namespaces are gone
			r.m.tearDown(id)
		}
		r.made++
		r.sandbox = fmt.Sprintf("%s-%s-%d-%d", r.pod.name.Name, r.pod.uid, r.m.starts, r.made)
	}
	r.busy = true
	r.tries++
	h, q := r.m.holder, r.request()
	r.m.w.spawn(r.m.agent, "add", func() { r.adding(h, q) })
}

// adding is the agent's way through an ADD.
func (r *podRun) adding(h *holder.Holder, q holder.Request) {
	m, w := r.m, r.m.w
	a, err := h.Assign(q)
	w.alive()
	w.note("assign %s %s: %v %v", r.pod.name, q.Sandbox, a.Addresses, err)
	if err != nil {
		r.refused(err)
		return
	}
	w.checkAnswer(r, q, a)
	if doubts := r.probe(a); len(doubts) > 0 {
		w.seen("doubtful address in use")
		w.pause(point{what: "quarantines"})
		_, _, err := h.Release(q.Key, a.Sequence, doubts)
		w.alive()
		w.note("released after a probe: %v", err)
		r.busy = false
		return
	}
	h.Vouch(q.Key)
	w.alive()
	w.pause(point{what: "configures"})
	if m.frozen && m.box(q.Sandbox) == nil {
		r.busy = false
		r.abandon()
		return
	}
	r.configured(q, a)
	w.pause(point{what: "answers"})
	r.busy, r.running, r.answer, r.tries, r.losses = false, true, &a, 0, m.losses
	w.cluster.pinned(r, a)
	w.publish(m, a)
}

// probe asks the wire about the doubtful addresses.
func (r *podRun) probe(a holder.Assignment) map[netip.Addr]string {
	doubts := map[netip.Addr]string{}
	for _, given := range a.Addresses {
		if !given.Doubtful {
			continue
		}
		r.m.w.seen("doubtful address probed")
		if r.m.w.wire.other(given.Prefix.Addr(), r.pod) != nil {
			doubts[given.Prefix.Addr()] = "answered a probe"
		}
	}
	return doubts
}

// configured puts the addresses of an answer into the sandbox.
func (r *podRun) configured(q holder.Request, a holder.Assignment) {
	if r.m.box(q.Sandbox) != nil {
		return
	}
	s := &sandbox{machine: r.m, pod: r.pod, id: q.Sandbox, losses: r.m.losses}
	for _, given := range a.Addresses {
		s.addresses = append(s.addresses, given.Prefix.Addr())
	}
	r.m.boxes = append(r.m.boxes, s)
	r.m.w.wire.claim(s)
}

// refused is an ADD without an answer. A full or broken disk refuses the ADD of
// a pod that runs, too; the pod runs on.
func (r *podRun) refused(err error) {
	w := r.m.w
	r.busy, r.lastError = false, err
	if _, ok := errors.AsType[*holder.ShortError](err); ok {
		w.seen("ADD refused: short")
	}
	if !r.running && w.chance(10) { // the runtime begins anew
		r.abandon()
	}
}
