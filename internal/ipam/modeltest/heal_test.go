package modeltest

import (
	"fmt"
	"slices"
	"time"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// The most ticks of a second that anything may take once nothing goes wrong.
const patience = 60

// heal ends all faults, then asks for everything: whatever was lost for good
// shows here.
func (w *world) heal() {
	w.note("the faults are over")
	w.repair()
	w.powerOff()
	if !w.until("the pods left are served", w.settled) {
		return
	}
	m := w.pick()
	for _, pool := range w.cluster.names() {
		w.useUp(m, pool)
	}
	pool := w.cluster.names()[w.rng.IntN(len(w.cluster.names()))]
	for _, m := range w.machines {
		w.useUp(m, pool)
	}
	if w.failure == nil {
		w.checkCounts()
	}
}

// repair makes everything right but what is lost for good.
func (w *world) repair() {
	w.calm, w.api.down = true, false
	for len(w.landing) > 0 {
		w.land(w.rng.IntN(len(w.landing)))
	}
	for i, c := range w.controllers {
		c.proc.cut, c.leads = false, i == 0
		c.restart()
	}
	for _, m := range w.machines {
		m.agent.cut, m.disk.full = false, false
		switch {
		case !m.on || m.frozen:
			if m.on {
				m.crash()
			}
			w.powerOn(m)
		case !m.agent.alive:
			m.start()
		}
	}
	w.cluster.repair()
}

// repair makes pools as they were at their largest, ends ordinary pods and
// virtual machines, and lets StatefulSets be complete.
func (c *cluster) repair() {
	for _, n := range c.names() {
		c.remakeIfGone(n)
		p := *c.w.api.pools.live[n]
		if p.closed != "" || p.deleting {
			p.closed, p.deleting = "", false
			c.putPool(&p)
		}
	}
	c.vms = nil
	c.fit()
	for _, n := range c.w.api.pods.names() {
		if p := c.w.api.pods.live[n]; !c.wanted(p.identity) && !p.ending {
			c.remove(p, false)
		}
	}
}

// fit scales StatefulSets down until their pools have enough for all.
func (c *cluster) fit() {
	for _, s := range slices.Backward(c.sets) {
		for s.replicas > 0 && !c.fits() {
			s.replicas--
			c.unpin(s.identity(s.replicas))
		}
	}
}

func (c *cluster) fits() bool {
	needs := map[string]int64{}
	for _, s := range c.sets {
		for _, nic := range s.shape {
			for _, ch := range nic.Choices {
				for _, p := range ch.Pools {
					needs[p.Name] += int64(s.replicas)
				}
			}
		}
	}
	for pool, n := range needs {
		if ipam.Count(c.w.api.pools.live[pool].addresses) < n {
			return false
		}
	}
	return true
}

func (c *cluster) remakeIfGone(n string) {
	if c.w.api.pools.live[n] == nil {
		c.remakePool(n)
	}
}

// tick is a second in which everybody does what there is to do.
func (w *world) tick() {
	w.ticks++
	w.clock = w.clock.Add(time.Second)
	w.cluster.cleanUp()
	for _, s := range w.cluster.sets {
		for i := range s.replicas {
			if n := name("ns", fmt.Sprintf("%s-%d", s.name, i)); w.api.pods.live[n.String()] == nil {
				w.cluster.addPod(n, w.cluster.schedulable(), s.identity(i), false, s.shape)
			}
		}
	}
	for range 3 {
		for _, m := range w.machines {
			m.pods.advance(len(w.api.pods.events))
			m.learn()
			for _, r := range slices.Clone(m.runs) {
				r.act()
			}
		}
		w.runAll()
	}
}

// runAll lets every thread go on until it has nothing to do.
func (w *world) runAll() {
	for _, p := range slices.Clone(w.processes) {
		for p.busy != nil {
			w.resume(p.busy)
		}
		for i := 0; i < len(p.threads); i++ {
			t := p.threads[i]
			for n := 0; ; n++ {
				w.resume(t)
				if w.failure != nil {
					return
				}
				if i >= len(p.threads) || p.threads[i] != t {
					i--
					break // it is done
				}
				if t.at.idle {
					break
				}
				if n > 20000 {
					w.fail(fmt.Errorf("%s comes to no end: %s", t.name, t.at.what))
					return
				}
			}
		}
	}
}

// until ticks until something holds, which is to be soon.
func (w *world) until(what string, holds func() error) bool {
	var err error
	for range patience {
		if w.tick(); w.failure != nil {
			return false
		}
		if err = holds(); err == nil {
			return true
		}
	}
	w.fail(fmt.Errorf("%s: not within %d seconds without faults: %w", what, patience, err))
	return false
}

// settled says that every pod runs and every other is gone.
func (w *world) settled() error {
	for _, n := range w.api.pods.names() {
		p := w.api.pods.live[n]
		if p.ending {
			return fmt.Errorf("pod %s still ends", n)
		}
		if err := w.runs(p); err != nil {
			return err
		}
	}
	for name, l := range w.api.ledgers.live {
		if word := l.Annotations[v1alpha1.AnnotationRelease]; word != "" {
			return fmt.Errorf("ledger %s: the word to release %s stands", name, word)
		}
	}
	for _, s := range w.cluster.sets {
		for i := range s.replicas {
			if n := fmt.Sprintf("ns/%s-%d", s.name, i); w.api.pods.live[n] == nil {
				return fmt.Errorf("pod %s is missing", n)
			}
		}
	}
	return nil
}

func (w *world) runs(p *podObject) error {
	for _, m := range w.machines {
		for _, r := range m.runs {
			if r.pod.uid != p.uid {
				continue
			}
			if r.running && len(r.toDelete) == 0 {
				return nil
			}
			return fmt.Errorf("pod %s on %s has no addresses: %s", p.name, m, w.why(m, r))
		}
	}
	return fmt.Errorf("no machine knows pod %s on %s", p.name, p.node)
}

// why is what the agent says to one more ADD.
func (w *world) why(m *machine, r *podRun) string {
	if m.holder == nil {
		return "its agent does not come up"
	}
	if r.running {
		return fmt.Sprintf("it runs, and DEL of %v is to come", r.toDelete)
	}
	return fmt.Sprintf("ready %v, last answer %v", m.holder.Ready(), r.lastError)
}
