package modeltest

import (
	"slices"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

func (w *world) killAgent(m *machine) {
	if !m.agent.alive {
		return
	}
	w.seen("agent killed")
	for _, t := range m.agent.threads {
		if t.at.what == "configures" || t.at.what == "answers" {
			w.seen("agent killed between journal and answer")
		}
	}
	w.note("agent of %s killed", m)
	m.stopAgent()
	n := w.rng.IntN(10)
	switch {
	case n < 3:
		w.seen("disk cache lost")
		m.disk.loseCache()
	case n < 4:
		m.loseJournal()
	case n < 5 && m.disk.corrupt():
		m.losses++
		w.note("journal corrupted")
		w.seen("journal corrupted")
	}
}

// loseGiving kills an agent that gives addresses back, and its journal. The
// write is carried out some time later, when the next run, which knows
// nothing of it, has given one of these addresses to a pod.
func (w *world) loseGiving(t *thread) {
	i := slices.IndexFunc(w.machines, func(m *machine) bool { return m.agent == t.proc })
	if i < 0 {
		return
	}
	w.seen("journal lost with a return under way")
	m, gives, effect := w.machines[i], t.at.gives, t.at.late
	t.at.late = nil
	m.stopAgent()
	m.loseJournal()
	w.cluster.crowded = m.name
	w.landing = append(w.landing, delayed{effect, func() bool {
		return !slices.ContainsFunc(m.boxes, func(s *sandbox) bool { return s.losses == m.losses && s.hasSome(gives) })
	}})
}

// hasSome says whether a sandbox has one of some addresses.
func (s *sandbox) hasSome(of []v1alpha1.Return) bool {
	return slices.ContainsFunc(of, func(r v1alpha1.Return) bool {
		set, err := ipam.ParseRanges(r.Addresses)
		return err == nil && slices.ContainsFunc(s.addresses, set.Contains)
	})
}

func (m *machine) loseJournal() {
	m.w.seen("journal lost")
	m.losses++
	m.w.note("journal lost")
	m.disk.files = map[string]*file{}
}
