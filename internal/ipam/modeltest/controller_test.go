package modeltest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
	"railhead/internal/ipam/granter"
)

// A controller is one replica. It learns that it leads, and that it leads no
// more, between two rounds only.
type controller struct {
	w      *world
	name   string
	proc   *process
	leads  bool
	report granter.Report
	err    error
	rounds int
}

// A view is what a replica's caches show; each lags by itself.
type view struct {
	leases  *watch[*v1alpha1.AddressLease]
	ledgers *watch[*v1alpha1.PoolLedger]
	nodes   *watch[*nodeObject]
	pools   *watch[*poolObject]
	uses    *watch[*use]
	absent  map[string]int
	known   map[string]granter.Node
	books   map[string]string // pools of the ledgers that were there when it looked last
}

func (w *world) addController(i int) {
	c := &controller{w: w, name: fmt.Sprintf("controller%d", i), leads: i == 0}
	w.controllers = append(w.controllers, c)
	w.processes = append(w.processes, nil)
	c.start(len(w.processes) - 1)
}

func (c *controller) start(slot int) {
	p := &process{name: c.name, alive: true}
	if c.proc != nil {
		p.cut, p.skew = c.proc.cut, c.proc.skew
	}
	c.proc = p
	c.w.processes[slot] = p
	c.w.spawn(p, "rounds", func() { c.serve(p) })
}

func (c *controller) restart() {
	slot := slices.Index(c.w.processes, c.proc)
	c.w.kill(c.proc)
	c.start(slot)
}

func (c *controller) serve(p *process) {
	w := c.w
	for !c.leads {
		w.pause(point{what: "stands by", idle: true})
	}
	g := granter.New(store{link{w: w, proc: p}}, granter.Options{ReserveMost: w.cluster.reserveMost})
	v := view{
		leases: newWatch(&w.api.leases, w.rng, w.lag()), nodes: newWatch(&w.api.nodes, w.rng, w.lag()),
		pools: newWatch(&w.api.pools, w.rng, w.lag()), uses: newWatch(&w.api.uses, w.rng, w.lag()),
		ledgers: newWatch(&w.api.ledgers, w.rng, w.lag()),
		absent:  map[string]int{}, known: map[string]granter.Node{}, books: map[string]string{},
	}
	for c.leads {
		now, err := v.look(w, p)
		if err == nil {
			w.note("round begins")
			c.report, c.err = g.Round(context.Background(), now)
			w.alive()
			c.rounds++
			w.note("round ends: again %t, %v", c.report.Again, c.err)
		}
		w.pause(point{what: "waits", idle: err != nil || !c.report.Again || c.err != nil})
	}
	w.pause(point{what: "exits", idle: true}) // as a process that lost its leadership does
}

func (w *world) lag() int {
	if w.calm {
		return 0
	}
	return 20
}

// look makes a view. Leases are read first; what could cost a node its
// addresses is confirmed live after that, as the wiring must.
func (v *view) look(w *world, p *process) (granter.View, error) {
	v.leases.some(w.rng, w.calm)
	v.nodes.some(w.rng, w.calm)
	v.pools.some(w.rng, w.calm)
	v.uses.some(w.rng, w.calm)
	v.ledgers.some(w.rng, w.calm)
	now := granter.View{Pools: map[string]ipam.Pool{}, Nodes: map[string]granter.Node{}, Now: w.now(p), Taken: v.taken()}
	for _, name := range sorted(v.leases.live) {
		now.Leases = append(now.Leases, v.leases.live[name])
	}
	for _, name := range sorted(v.pools.live) {
		now.Pools[name] = v.pools.live[name].pool()
	}
	names := sorted(v.nodes.live)
	for _, more := range [][]string{sorted(v.leases.live), sorted(v.known)} {
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		if err := v.node(w, p, name, now.Nodes); err != nil {
			return now, err
		}
	}
	now.Touched = v.touched() // at the end: nothing of it is forgotten when a node cannot be read
	now.TakenBy = v.takenBy
	now.GoneIdentity = w.cluster.goneIdentity
	now.GonePod = func(pod string) bool { _, ok := w.api.pods.live[pod]; return !ok }
	return now, nil
}

// touched is the ledgers that an administrator wrote on, and those that went.
func (v *view) touched() map[string]string {
	touched := map[string]string{}
	for name, l := range v.ledgers.live {
		if v.books[name] = l.Spec.Pool; l.Annotations[v1alpha1.AnnotationRelease] != "" {
			touched[name] = l.Spec.Pool
		}
	}
	for name, pool := range v.books {
		if v.ledgers.live[name] == nil {
			touched[name] = pool
			delete(v.books, name)
		}
	}
	return touched
}

// node says what is sure of a node: bad news is read live, and that it is gone
// is seen twice.
func (v *view) node(w *world, p *process, name string, into map[string]granter.Node) error {
	n := v.nodes.live[name]
	if n == nil || n.fenced {
		var err error
		n, err = send(link{w: w, proc: p}, "get node "+name, false, func() (*nodeObject, error) { return w.api.nodes.live[name], nil })
		if err != nil {
			return err
		}
	}
	if n != nil {
		v.absent[name] = 0
		v.known[name] = granter.Node{UID: n.uid, Fenced: n.fenced}
		into[name] = v.known[name]
		return nil
	}
	v.absent[name]++
	if before, ok := v.known[name]; ok && v.absent[name] < 2 {
		into[name] = before
	}
	return nil
}

// taken is what pods have by what was published.
func (v *view) taken() func(string) *netipx.IPSet {
	byPool := map[string]*netipx.IPSetBuilder{}
	add := func(pool string, addr netip.Addr) {
		if byPool[pool] == nil {
			byPool[pool] = &netipx.IPSetBuilder{}
		}
		byPool[pool].Add(addr)
	}
	for _, u := range v.uses.live {
		if u.foreign.IsValid() {
			add(u.poolName, u.foreign)
		}
		for _, given := range u.given.Addresses {
			add(given.Pool, given.Prefix.Addr())
		}
	}
	return func(pool string) *netipx.IPSet {
		b := byPool[pool]
		if b == nil {
			return nil
		}
		set, _ := b.IPSet()
		return set
	}
}

func (v *view) takenBy(pool string, addr netip.Addr) string {
	for _, n := range sorted(v.uses.live) {
		u := v.uses.live[n]
		if u.poolName == pool && u.foreign == addr {
			return n
		}
		for _, given := range u.given.Addresses {
			if given.Pool == pool && given.Prefix.Addr() == addr {
				return n
			}
		}
	}
	return ""
}

func name(namespace, n string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: n}
}
