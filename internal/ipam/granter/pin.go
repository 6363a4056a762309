package granter

import (
	"fmt"
	"slices"

	"go4.org/netipx"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// pin is an identity that a node asks for.
type pin struct {
	*v1alpha1.Pin

	lease *lease
}

// pinKey is what an identity keeps of one pool.
type pinKey struct{ identity, pool string }

// wants is how many addresses of a pool a pin has.
func (p pin) wants(pool string) int64 {
	for i := range p.Wants {
		if p.Wants[i].Pool == pool {
			return p.Wants[i].Addresses
		}
	}
	return 0
}

// pins is the identities that nodes ask for.
func (r *round) pins() map[string][]pin {
	if r.asked != nil {
		return r.asked
	}
	r.asked = map[string][]pin{}
	for _, l := range r.leases {
		if l.standing != served {
			continue
		}
		for i := range l.object.Spec.Pins {
			p := pin{&l.object.Spec.Pins[i], l}
			r.asked[p.Identity] = append(r.asked[p.Identity], p)
		}
	}
	return r.asked
}

// givePins gives identities what they keep, and what they lack.
func (r *round) givePins() {
	var bundles []bundle
	kept := r.now().byIdentity
	r.unknown = r.now().unknown
	for _, l := range r.leases {
		if l.standing != served {
			continue
		}
		for i := range l.object.Spec.Pins {
			p := pin{&l.object.Spec.Pins[i], l}
			b := bundle{lease: l, identity: p.Identity}
			for _, want := range p.Wants {
				if n := r.keep(p, want, of(kept[p.Identity], want.Pool)); n > 0 {
					b.asks = append(b.asks, ask{r.pools[want.Pool], n})
				}
			}
			if len(b.asks) > 0 {
				bundles = append(bundles, b)
			}
		}
	}
	r.place(bundles)
}

// keep moves what an identity keeps of a pool to its node, and says how many
// addresses it lacks that it never had.
func (r *round) keep(p pin, want v1alpha1.Want, kept []share) int64 {
	e := p.lease.entry(want.Pool)
	_, why := r.open(want.Pool, p.lease.name)
	var all, here int64
	for _, s := range kept {
		for _, run := range s.runs {
			all += ipam.Size(run.IPRange)
			if run.On(p.lease.name) {
				here += ipam.Size(run.IPRange)
				continue
			}
			claimed := int64(0)
			if why == "" {
				claimed = r.claim(p, s.book, run, want.Addresses-here)
			}
			if here += claimed; claimed == 0 && run.Node != "" {
				e.say("%s of %s is on node %s until that returns it", ipam.FormatRange(run.IPRange), p.Identity, run.Node)
			}
		}
	}
	key := pinKey{p.Identity, want.Pool}
	lacks := want.Addresses - all
	switch {
	case lacks <= 0:
		if why != "" && here < want.Addresses {
			e.say("%s", why)
		}
		return 0
	case why != "":
		e.say("%s", why)
		return 0
	case r.pinned[key], r.uncertain(want.Pool): // another node asks for the same identity, or it may keep some that is not known
		r.deferred = true
		return 0
	}
	r.pinned[key] = true
	e.pinLacks += lacks
	return lacks
}

// uncertain says whether a ledger of a pool is not known.
func (r *round) uncertain(pool string) bool {
	return slices.ContainsFunc(r.unknown, func(b *book) bool { return b.pool == pool })
}

// claim gives a run of an identity to the node it is on now: a parked one, up
// to most addresses, or as the target of a migration (R12). It says how many
// addresses those are.
func (r *round) claim(p pin, b *book, run ipam.Run, most int64) int64 {
	if b.rebuilding() || run.Node != "" && !p.Migration {
		return 0
	}
	node, epoch := p.lease.name, b.ledger.Epoch+1
	free := ipam.StockOf(ipam.Without([]netipx.IPRange{run.IPRange}, p.lease.returning[b.pool])) // R4
	var claimed int64
	for _, addresses := range free.Take(most, nil) {
		r.edit(b, addresses, func(held *ipam.Run) bool {
			switch {
			case held.Identity != p.Identity || held.On(node) || held.Target != "":
				return true
			case held.Node == "":
				held.Node = node
			case p.Migration:
				held.Target = node
			default:
				return true
			}
			held.Epoch = epoch // R3
			claimed += ipam.Size(held.IPRange)
			return true
		})
	}
	b.tally.granted += claimed
	return claimed
}

// say adds a reason why a node has less of a pool than it needs.
func (e *entry) say(format string, args ...any) {
	e.why = append(e.why, fmt.Sprintf(format, args...))
}
