package modeltest

import (
	"errors"
	"fmt"
	"slices"

	"go4.org/netipx"

	"railhead/internal/ipam"
	"railhead/internal/ipam/holder"
)

// powerOff ends the machines that were replaced, after all addresses of a pool
// were wanted, those that these machines use among them: they are doubtful, and
// given to nobody for good.
func (w *world) powerOff() {
	if len(w.zombies) > 0 {
		pods := w.demand(w.pick(), w.contested())
		for range 20 {
			if w.tick(); w.failure != nil {
				return
			}
		}
		w.removeAll(pods)
	}
	for _, z := range w.zombies {
		z.crash()
	}
	w.zombies = nil
}

// contested is a pool of which such a machine has addresses, if one has.
func (w *world) contested() string {
	names := w.cluster.names()
	for _, z := range w.zombies {
		for _, s := range z.boxes {
			for _, n := range names {
				if slices.ContainsFunc(s.addresses, w.api.pools.live[n].addresses.Contains) {
					return n
				}
			}
		}
	}
	return names[w.rng.IntN(len(names))]
}

// useUp gets every address of a pool that nobody uses on one machine: the last
// one, those that came out of quarantine, and those that others had.
func (w *world) useUp(m *machine, pool string) {
	if w.failure != nil {
		return
	}
	pods := w.demand(m, pool)
	what := fmt.Sprintf("%d addresses of pool %s are used on %s", len(pods), pool, m.name)
	if !w.until(what, func() error {
		var all error
		for _, p := range pods {
			if err := w.runs(p); err != nil {
				all = errors.Join(all, err)
			}
		}
		return all
	}) {
		return
	}
	w.removeAll(pods)
	w.until(what+", and freed again", w.settled)
}

// demand makes pods that need all addresses of a pool that are not on the wire,
// one each, up to a number.
func (w *world) demand(m *machine, pool string) []*podObject {
	const most = 40
	p := w.api.pools.live[pool]
	var b netipx.IPSetBuilder
	b.AddSet(p.addresses)
	for addr := range w.wire.claims {
		b.Remove(addr)
	}
	free, _ := b.IPSet()
	var pods []*podObject
	for range min(ipam.Count(free), most) {
		nic := holder.NIC{Interface: "net1", Choices: []holder.Choice{{Pools: []holder.PoolRef{p.ref()}}}}
		pods = append(pods, w.cluster.ordinary(m, []holder.NIC{nic}))
	}
	return pods
}

func (w *world) removeAll(pods []*podObject) {
	for _, p := range pods {
		if now := w.api.pods.live[p.name.String()]; now != nil {
			w.cluster.remove(now, false)
		}
	}
}

// checkCounts holds the last report against the wire and the ledgers.
func (w *world) checkCounts() {
	report := w.controllers[0].report
	for _, n := range w.cluster.names() {
		p, r := w.api.pools.live[n], report.Pools[n]
		if total := ipam.Count(p.addresses); r.Total != total {
			w.fail(fmt.Errorf("pool %s: report says %d addresses, and it has %d", n, r.Total, total))
		}
		var held, quarantined int64
		for _, name := range w.api.ledgers.names() {
			l := w.api.ledgers.live[name]
			if l.Spec.Pool != n {
				continue
			}
			for _, run := range l.Spec.Runs {
				set, err := ipam.ParseRange(run.Addresses)
				switch {
				case err != nil:
					w.fail(err)
				case run.Quarantine != nil:
					quarantined += ipam.Count(setOf(set))
				case run.Node != "":
					held += ipam.Count(setOf(set))
				}
			}
		}
		if r.Held != held || r.Quarantined != quarantined {
			w.fail(fmt.Errorf("pool %s: report says held %d, quarantined %d; ledgers say %d and %d", n, r.Held, r.Quarantined, held, quarantined))
		}
	}
}
