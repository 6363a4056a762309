package modeltest

import (
	"slices"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// faultKinds are all kinds of faults and of rare ways. A run of TestModel in which
// one never happened proves less than it says, and fails.
var faultKinds = []string{
	"request lost", "request delayed", "answer lost", "conflict", "partition", "API down",
	"request lands after its sender died",
	"agent killed", "agent killed between journal and answer", "controller killed", "leader changed", "two leaders",
	"cut off: node", "cut off: controller",
	"disk full", "disk I/O error", "disk cache lost", "journal lost", "journal lost with a return under way",
	"an earlier run's return lands on addresses in use", "journal corrupted",
	"node rebooted", "node reinstalled", "node replaced, old one runs on", "node removed", "node removed while it runs",
	"node back under another UID", "node out of service", "node fenced by annotation",
	"clock jumped", "ledger deleted by force", "lease deleted", "object touched", "quarantine released",
	"pool shrunk", "pool grown", "pool disabled", "pool enabled", "pool deleted", "pool made again",
	"pod force-deleted", "repeated ADD", "ADD with a new sandbox", "late DEL", "doubled DEL", "DEL never comes",
	"collected without DEL", "VM migrates", "pin moved to another node", "exact address asked", "in use before Railhead",
	"ADD refused: short", "doubtful address probed", "doubtful address in use",
}

// disturb makes one thing go wrong.
func (w *world) disturb() {
	m, c := w.pick(), w.controllers[w.rng.IntN(2)]
	n := w.rng.IntN(100)
	switch {
	case n < 18:
		w.killAgent(m)
	case n < 26:
		w.seen("controller killed")
		w.note("%s killed", c.name)
		c.restart()
	case n < 34:
		w.changeLeader()
	case n < 40:
		w.seen("cut off: node")
		w.note("%s cut off", m)
		m.agent.cut = true
	case n < 44:
		w.seen("cut off: controller")
		w.note("%s cut off", c.name)
		c.proc.cut = true
	case n < 46:
		w.note("API down")
		w.api.down = true
	case n < 50:
		w.note("disk of %s full", m)
		m.disk.full = true
	case n < 58:
		w.endMachine(m)
	case n < 64:
		w.removeNode(m)
	case n < 68:
		w.fence(m)
	case n < 72:
		w.seen("clock jumped")
		w.processes[w.rng.IntN(len(w.processes))].skew = int64(w.rng.IntN(7200) - 3600)
	case n < 76:
		w.forceDelete()
	case n < 78:
		w.release()
	case n < 87:
		w.touch()
	default:
		w.cluster.editPool()
	}
}

func (w *world) changeLeader() {
	a, b := w.controllers[0], w.controllers[1]
	switch {
	case w.chance(40):
		w.seen("two leaders")
		a.leads, b.leads = true, true
	case a.leads:
		w.seen("leader changed")
		a.leads, b.leads = false, true
	default:
		w.seen("leader changed")
		a.leads, b.leads = true, false
	}
	w.note("leaders: %t %t", a.leads, b.leads)
}

// forceDelete deletes a lease, or a ledger in spite of its finalizer.
func (w *world) forceDelete() {
	if names := w.api.leases.names(); w.chance(50) && len(names) > 0 {
		w.seen("lease deleted")
		n := names[w.rng.IntN(len(names))]
		w.note("lease %s deleted", n)
		w.api.leases.remove(n)
		return
	}
	names := w.api.ledgers.names()
	if len(names) == 0 {
		return
	}
	l := w.api.ledgers.live[names[w.rng.IntN(len(names))]]
	if !w.recoverable(l) {
		return
	}
	w.seen("ledger deleted by force")
	w.note("ledger %s deleted by force", l.Name)
	w.api.ledgers.remove(l.Name)
	w.forgetEpochs(l)
	w.cluster.unpinPool(l.Spec.Pool)
}

// release is an administrator's word on a ledger that nobody uses what is in
// quarantine there, which is true: nothing runs that is off the cluster, and no
// sandbox has any of it. What is not in quarantine is none of it, whatever it says.
func (w *world) release() {
	names := w.api.ledgers.names()
	if len(names) == 0 || len(w.zombies) > 0 || slices.ContainsFunc(w.machines, func(m *machine) bool { return m.frozen }) {
		return
	}
	l := w.api.ledgers.live[names[w.rng.IntN(len(names))]]
	word, any := "all", false
	for addr, run := range byAddress(l) {
		if run.Quarantine == nil {
			continue
		}
		if any = true; len(w.wire.claims[addr]) > 0 {
			return
		}
	}
	if !any {
		return
	}
	if w.chance(30) {
		word = l.Spec.Part
	}
	w.seen("quarantine released")
	w.note("ledger %s: release %s", l.Name, word)
	to := l.DeepCopy()
	metav1.SetMetaDataAnnotation(&to.ObjectMeta, v1alpha1.AnnotationRelease, word)
	to.ResourceVersion = w.api.next()
	w.api.ledgers.put(l.Name, to)
}

// recoverable tells whether all that nodes hold and pods use of a ledger stands
// in the statuses of leases, too: what does not cannot be had back by anybody.
func (w *world) recoverable(l *v1alpha1.PoolLedger) bool {
	for addr, run := range byAddress(l) {
		shown := func(m *machine) bool {
			return m.name == run.Node && w.leased(m, l.Spec.Pool, setOf(netipx.IPRangeFrom(addr, addr)))
		}
		if run.Node != "" && !slices.ContainsFunc(w.machines, shown) {
			return false
		}
	}
	part, err := ipam.ParseRange(l.Spec.Part)
	if err != nil {
		return false
	}
	for addr, boxes := range w.wire.claims {
		if !part.Contains(addr) {
			continue
		}
		for _, s := range boxes {
			if s.machine == nil || !w.leased(s.machine, l.Spec.Pool, setOf(netipx.IPRangeFrom(addr, addr))) {
				return false
			}
		}
	}
	return true
}

func (w *world) leased(m *machine, pool string, set *netipx.IPSet) bool {
	l := w.api.leases.live[m.name]
	if l == nil || l.Status.NodeUID != m.uid {
		return false
	}
	for _, p := range l.Status.Pools {
		for _, g := range p.Grants {
			if have, err := ipam.ParseRanges(g.Addresses); err == nil && p.Pool == pool && have.OverlapsPrefix(set.Prefixes()[0]) {
				return true
			}
		}
	}
	return false
}

func (w *world) touch() {
	w.seen("object touched")
	if names := w.api.leases.names(); w.chance(50) && len(names) > 0 {
		w.api.touchLease(names[w.rng.IntN(len(names))])
	} else if names := w.api.ledgers.names(); len(names) > 0 {
		w.api.touchLedger(names[w.rng.IntN(len(names))])
	}
}

// recover makes one thing right again.
func (w *world) recover() {
	m := w.pick()
	switch {
	case !m.on:
		w.powerOn(m)
	case m.frozen:
		if w.rarely(4) {
			w.rejoin(m)
		}
	case !m.agent.alive:
		m.start()
	case w.chance(50):
		if w.rarely(3) {
			m.agent.cut = false
		}
		if w.rarely(3) {
			m.disk.full = false
		}
	case w.chance(50):
		w.api.down = false
	case w.rarely(4) && len(w.zombies) > 0:
		w.zombies[0].crash()
		w.note("%s powered off", w.zombies[0])
		w.zombies = w.zombies[1:]
	default:
		w.recoverController()
	}
}

func (w *world) recoverController() {
	c := w.controllers[w.rng.IntN(2)]
	c.proc.cut = false
	if w.controllers[0].leads && w.controllers[1].leads && w.chance(50) {
		c.leads = false
	}
	if len(c.proc.threads) == 0 {
		c.restart()
	}
}
