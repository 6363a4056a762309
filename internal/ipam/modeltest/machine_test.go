package modeltest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
)

// A machine is a node as it stands in a rack: kubelet, agent, disk and the
// sandboxes in its kernel.
type machine struct {
	w      *world
	name   string
	uid    types.UID // of the Node that it registered as
	boot   string
	disk   *disk
	on     bool
	frozen bool // its Node is gone or another's: it starts no sandboxes
	boxes  []*sandbox
	runs   []*podRun
	agent  *process
	holder *holder.Holder
	pods   *watch[*podObject]
	leases *watch[*v1alpha1.AddressLease]
	starts int
	losses int // of journals
	// notices are pods that come and go, of which the agent is yet to be told.
	notices []func()
}

func (m *machine) String() string { return fmt.Sprintf("%s (%s, boot %s)", m.name, m.uid, m.boot) }

func (w *world) addMachine(name string) *machine {
	m := &machine{w: w, name: name, uid: w.api.uid(), disk: newDisk(w), on: true}
	w.api.nodes.put(name, &nodeObject{name: name, uid: m.uid})
	m.power()
	w.machines = append(w.machines, m)
	return m
}

// power begins a new boot.
func (m *machine) power() {
	m.starts++
	m.on, m.boot = true, fmt.Sprintf("%s-boot-%d", m.uid, m.starts)
	m.pods = newWatch(&m.w.api.pods, m.w.rng, 0)
	m.start()
}

// start begins a new run of the agent.
func (m *machine) start() {
	w := m.w
	if m.agent != nil {
		m.stopAgent()
	}
	m.starts++
	m.holder = nil
	m.leases = newWatch(&w.api.leases, w.rng, 10)
	p := &process{name: m.name, alive: true}
	if m.agent != nil {
		p.cut, p.skew = m.agent.cut, m.agent.skew
		w.processes[slices.Index(w.processes, m.agent)] = p
	} else {
		w.processes = append(w.processes, p)
	}
	m.agent = p
	session := fmt.Sprintf("%s-run-%d", m.uid, m.starts)
	w.spawn(p, "sync", func() { m.serve(p, session) })
}

// stopAgent kills the agent. CNI requests in flight fail.
func (m *machine) stopAgent() {
	m.w.kill(m.agent)
	m.holder = nil
	for _, r := range m.runs {
		r.interrupted()
	}
}

// crash is the end of a boot: all sandboxes are gone.
func (m *machine) crash() {
	m.stopAgent()
	m.on = false
	m.disk.loseCache()
	for _, s := range m.boxes {
		m.w.wire.drop(s)
	}
	m.boxes, m.runs = nil, nil
}

// serve is the agent: it opens its books, then goes on syncing.
func (m *machine) serve(p *process, session string) {
	w := m.w
	var h *holder.Holder
	for {
		var err error
		h, err = holder.Open(m.disk, holder.Options{
			Node: m.name, UID: m.uid, BootID: m.boot, Session: session,
			Now: func() time.Time { return w.now(p) },
		})
		w.alive()
		if err == nil {
			break
		}
		w.note("open: %v", err)
		w.pause(point{what: "opens again", idle: true})
	}
	w.note("%s opened, ready: %v", m, h.Ready())
	m.checkBooks(h)
	m.recall(h)
	m.holder = h
	m.notices = nil
	w.spawn(p, "watch", func() { m.watch(h) })
	w.spawn(p, "pods", m.hear)
	api := leaseAPI{link{w: w, proc: p}, m.name}
	for first := true; ; first = false {
		if first || h.Dirty() || w.rarely(4) {
			err := h.Sync(context.Background(), api)
			w.alive()
			w.note("sync: %v", err)
		}
		w.pause(point{what: "waits", idle: true})
		if w.rarely(10) || w.calm {
			m.occupied(h)
			m.collect(h)
		}
	}
}

// recall tells a new run what is there: the kernel's word, and what was published.
func (m *machine) recall(h *holder.Holder) {
	if h.Ready() == nil && m.w.chance(50) {
		return // it serves at once; the kernel's word comes later
	}
	uses := newWatch(&m.w.api.uses, m.w.rng, 5)
	m.occupied(h)
	if h.Ready() == nil {
		return
	}
	for _, name := range sorted(uses.live) {
		if u := uses.live[name]; u.node == m.name && len(u.given.Addresses) > 0 && m.box(u.given.Sandbox) != nil {
			err := h.Adopt(u.given)
			m.w.alive()
			m.w.note("adopt %s: %v", name, err)
		}
	}
}

// occupied tells the agent what is in the machine's namespaces, a moment later.
func (m *machine) occupied(h *holder.Holder) {
	inUse := map[netip.Addr]string{}
	for _, s := range m.boxes {
		for _, addr := range s.addresses {
			inUse[addr] = s.id
		}
	}
	m.w.pause(point{what: "read namespaces"})
	m.w.note("occupied: %d addresses", len(inUse))
	h.Occupied(inUse)
	m.w.alive()
}

// watch shows the agent its lease, late.
func (m *machine) watch(h *holder.Holder) {
	for {
		before := m.leases.live[m.name]
		m.leases.some(m.w.rng, m.w.calm)
		if before != nil && m.leases.live[m.name] == nil {
			m.w.note("the lease is gone")
			h.Forget()
			m.w.alive()
		}
		if l := m.leases.live[m.name]; l != nil && (l != before || m.w.rarely(4)) {
			err := h.Observe(l)
			m.w.alive()
			m.w.note("observe v%s: %v", l.ResourceVersion, err)
		}
		m.w.pause(point{what: "watches", idle: true})
	}
}

// hear tells the agent of pods that come and go, in order.
func (m *machine) hear() {
	for {
		for len(m.notices) > 0 {
			n := m.notices[0]
			m.notices = m.notices[1:]
			n()
			m.w.alive()
		}
		m.w.pause(point{what: "hears of pods", idle: true})
	}
}

// collect frees what pods had that are no more, where no DEL ever came.
func (m *machine) collect(h *holder.Holder) {
	for _, a := range h.Assignments() {
		pod, live := m.w.api.pods.live[a.Pod.String()]
		if m.agent.cut || m.w.api.down || m.box(a.Sandbox) != nil || m.adding(a.Key) || live && pod.uid == a.PodUID {
			continue
		}
		m.w.pause(point{what: "collects"})
		_, freed, err := h.Release(a.Key, a.Sequence, nil)
		m.w.alive()
		m.w.note("collect %s of %s: %t, %v", a.Sandbox, a.Pod, freed, err)
		m.w.seen("collected without DEL")
	}
}

func (m *machine) adding(k holder.Key) bool {
	return slices.ContainsFunc(m.runs, func(r *podRun) bool { return r.pod.uid == k.PodUID })
}

// box is the live sandbox of an ID.
func (m *machine) box(id string) *sandbox {
	for _, s := range m.boxes {
		if s.id == id {
			return s
		}
	}
	return nil
}

// tearDown takes a sandbox out of the kernel.
func (m *machine) tearDown(id string) {
	if s := m.box(id); s != nil {
		m.w.wire.drop(s)
		m.boxes = slices.DeleteFunc(m.boxes, func(o *sandbox) bool { return o == s })
	}
}
