package modeltest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"railhead/api/railhead/v1alpha1"
)

// A world is one interleaving: all of it follows from its seed.
type world struct {
	seed   uint64
	rng    *rand.Rand
	steps  int
	limit  int
	faults int                                     // of a thousand requests, of each kind
	sticky int                                     // how often of a hundred a thread goes on that just ran
	older  map[string]*v1alpha1.AddressLeaseStatus // of planted olderStatus
	drifts bool                                    // pods come and go fast, and crowd on one machine after the other
	clock  time.Time
	calm   bool // the faults are over
	ticks  int

	api         *apiServer
	wire        wire
	processes   []*process
	ready       []*thread
	current     *thread
	last        *thread
	landing     []delayed
	machines    []*machine
	zombies     []*machine // off the cluster, still running their pods
	controllers []*controller
	cluster     cluster
	planted     planted
	epochs      map[netip.Addr]int64 // the highest by which an address was ever granted

	coverage map[string]int
	failure  error
	verbose  bool
	trace    []string
}

// longest is the most steps of chaos.
const longest = 20000

func newWorld(seed uint64, limit int, bug planted) *world {
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 6)), api: newAPIServer(), coverage: map[string]int{}, planted: bug,
		epochs: map[netip.Addr]int64{}, older: map[string]*v1alpha1.AddressLeaseStatus{},
		clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	w.wire = wire{w: w, claims: map[netip.Addr][]*sandbox{}}
	w.api.blind = bug.withoutCAS
	w.limit = 500 + w.rng.IntN(4500)
	if w.rarely(4) || bug.long {
		w.limit = longest // in which addresses move from node to node
	}
	if limit > 0 {
		w.limit = limit
	}
	w.faults = []int{0, 2, 10, 40}[w.rng.IntN(4)]
	if bug.long {
		w.faults = max(w.faults, 2)
	}
	w.sticky = []int{0, 50, 90}[w.rng.IntN(3)]
	w.drifts = w.chance(40) || bug.lossy
	w.cluster.begin(w)
	for i := range 2 + w.rng.IntN(4) {
		w.addMachine(fmt.Sprintf("node%d", i+1))
	}
	for i := range 2 {
		w.addController(i)
	}
	w.api.settle()
	return w
}

// run is the whole life of a world: chaos, then healing.
func (w *world) run() error {
	for w.steps < w.limit && w.failure == nil {
		w.step()
	}
	if w.failure == nil {
		w.heal()
	}
	for _, p := range w.processes {
		w.kill(p)
	}
	return w.failure
}

func (w *world) fail(err error) {
	if w.failure == nil {
		w.note("FAILED: %v", err)
		w.failure = err
	}
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

// one of n things that happen now and then.
func (w *world) rarely(oneIn int) bool { return w.rng.IntN(oneIn) == 0 }

func (w *world) seen(kind string) {
	if !w.calm || strings.HasPrefix(kind, "doubtful") {
		w.coverage[kind]++
	}
}

// delayed is a request under way in the network.
type delayed struct {
	effect func()
	not    func() bool // not yet, but rarely; nil: at any time
}

func (w *world) later(effect func()) { w.landing = append(w.landing, delayed{effect: effect}) }

func (w *world) land(i int) {
	d := w.landing[i]
	if d.not != nil && !w.calm && d.not() && !w.rarely(100) {
		return
	}
	w.landing = append(w.landing[:i], w.landing[i+1:]...)
	if d.not != nil && !d.not() {
		w.seen("an earlier run's return lands on addresses in use")
	}
	if d.not != nil && w.planted.lossy {
		w.cluster.crowded = w.pick().name
	}
	d.effect()
}

func (w *world) note(format string, args ...any) {
	if !w.verbose {
		return
	}
	who := "world"
	if w.current != nil {
		who = w.current.name
	}
	w.trace = append(w.trace, fmt.Sprintf("%5d %-16s %s", w.steps, who, fmt.Sprintf(format, args...)))
}

// step lets one of all that could happen next happen.
func (w *world) step() {
	w.steps++
	w.clock = w.clock.Add(time.Duration(w.rng.IntN(100)) * time.Millisecond)
	threads, kubelets := 700, 850
	if w.drifts {
		threads, kubelets = 600, 790
	}
	switch n := w.rng.IntN(1000); {
	case n < threads:
		w.runThread()
	case n < kubelets:
		w.pick().kubelet()
	case n < 890:
		w.cluster.step()
	case n < 900 && len(w.landing) > 0:
		w.land(w.rng.IntN(len(w.landing)))
	case n < 900+w.faults/2:
		w.disturb()
	default:
		w.recover()
	}
}

func (w *world) pick() *machine { return w.machines[w.rng.IntN(len(w.machines))] }

func (w *world) runThread() {
	ready := w.runnable()
	if len(ready) == 0 {
		return
	}
	t := ready[w.rng.IntN(len(ready))]
	if w.last != nil && !w.last.dead && w.chance(w.sticky) {
		for _, o := range ready {
			if o == w.last {
				t = o
			}
		}
	}
	w.last = t
	w.resume(t)
	if len(t.at.gives) > 0 && w.faults > 0 && (w.planted.lossy || w.rarely(5)) {
		w.loseGiving(t)
	}
}

// now is a process's clock, which may be wrong and may jump.
func (w *world) now(p *process) time.Time {
	if w.current != nil && !w.calm && w.rarely(16) {
		w.halt(point{what: "clock", alone: true})
	}
	return w.clock.Add(time.Duration(p.skew) * time.Second)
}
