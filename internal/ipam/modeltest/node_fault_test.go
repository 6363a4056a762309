package modeltest

import (
	"maps"
	"slices"

	"railhead/api/railhead/v1alpha1"
)

// endMachine ends a boot, a disk or a machine.
func (w *world) endMachine(m *machine) {
	switch n := w.rng.IntN(10); {
	case n < 5:
		w.seen("node rebooted")
		w.note("%s reboots", m)
		m.crash()
	case n < 7:
		w.seen("node reinstalled")
		w.note("%s reinstalled", m)
		m.crash()
		m.disk.files = map[string]*file{}
	default:
		for range 3 { // rather one that runs pods
			if len(m.boxes) == 0 {
				m = w.pick()
			}
		}
		w.replace(m)
	}
}

// replace puts another machine into the place of one that nobody could stop.
func (w *world) replace(m *machine) {
	w.seen("node replaced, old one runs on")
	w.note("%s replaced; it runs on", m)
	m.frozen, m.agent.cut = true, true
	if w.chance(50) {
		m.stopAgent()
	}
	w.zombies = append(w.zombies, m)
	i := slices.Index(w.machines, m)
	n := w.addMachine(m.name)
	w.machines = slices.Delete(w.machines, len(w.machines)-1, len(w.machines))
	w.machines[i] = n
}

func (w *world) removeNode(m *machine) {
	if w.api.nodes.live[m.name] == nil {
		return
	}
	if w.chance(50) {
		w.seen("node removed")
		m.crash()
	} else {
		w.seen("node removed while it runs")
		m.frozen = true
		m.agent.cut = m.agent.cut || w.chance(50)
	}
	w.note("Node of %s removed", m)
	w.api.nodes.remove(m.name)
}

// fence is an administrator's word about a machine that is off.
func (w *world) fence(m *machine) {
	n := w.api.nodes.live[m.name]
	if n != nil && n.uid != m.uid {
		return
	}
	m.crash()
	if n != nil && w.chance(60) {
		w.seen("node out of service")
		w.note("%s out of service", m)
		w.api.nodes.put(m.name, &nodeObject{name: m.name, uid: n.uid, fenced: true})
		return
	}
	if l := w.api.leases.live[m.name]; l != nil && l.Spec.NodeUID == m.uid {
		w.seen("node fenced by annotation")
		w.annotate(l, string(m.uid))
	}
}

func (w *world) annotate(l *v1alpha1.AddressLease, uid string) {
	w.note("lease %s: annotation fenced %q", l.Name, uid)
	to := l.DeepCopy()
	to.Annotations = maps.Clone(to.Annotations)
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	to.Annotations[v1alpha1.AnnotationFenced] = uid
	if uid == "" {
		delete(to.Annotations, v1alpha1.AnnotationFenced)
	}
	to.ResourceVersion = w.api.next()
	w.api.leases.put(l.Name, to)
}

// powerOn starts a machine that was off: as the Node it was if that is there
// still, as a new one if not.
func (w *world) powerOn(m *machine) {
	if l := w.api.leases.live[m.name]; l != nil && l.Annotations[v1alpha1.AnnotationFenced] != "" {
		w.annotate(l, "")
	}
	m.frozen, m.agent.cut = false, false
	if n := w.api.nodes.live[m.name]; n != nil && n.uid == m.uid {
		if n.fenced {
			w.note("%s in service", m)
			w.api.nodes.put(m.name, &nodeObject{name: m.name, uid: m.uid})
		}
	} else {
		m.uid = w.api.uid()
		w.seen("node back under another UID")
		w.api.nodes.put(m.name, &nodeObject{name: m.name, uid: m.uid})
	}
	m.power()
	w.note("%s powered on", m)
}

// rejoin registers a running machine again, under another UID. Its pods were
// removed from the API, so its kubelet ends them.
func (w *world) rejoin(m *machine) {
	if w.api.nodes.live[m.name] != nil {
		return
	}
	w.seen("node back under another UID")
	m.uid = w.api.uid()
	m.losses++ // the journal is of the Node that was
	w.api.nodes.put(m.name, &nodeObject{name: m.name, uid: m.uid})
	m.frozen, m.agent.cut = false, false
	for _, r := range m.runs {
		r.ending = true
	}
	w.note("%s registers again", m)
	m.start()
}
