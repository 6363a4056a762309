package granter

import (
	"slices"
	"strings"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// giveExact gives nodes the very addresses that they name: free ones, and those
// in quarantine or of pods as doubtful. Others are asked back from who has them.
func (r *round) giveExact() {
	for _, l := range r.leases {
		if l.standing != served {
			continue
		}
		for _, name := range sortedKeys(l.exact) {
			missing := ipam.Without(l.exact[name], r.heldBy(l.name, name))
			if len(missing) == 0 {
				continue
			}
			e := l.entry(name)
			p, why := r.open(name, l.name)
			if why != "" {
				e.say("%s", why)
				continue
			}
			r.giveNamed(l, e, p, missing)
		}
	}
}

// giveNamed gives one node addresses of one pool, as far as they can be had.
func (r *round) giveNamed(l *lease, e *entry, p *pool, missing []netipx.IPRange) {
	to := &bundle{lease: l}
	can := ipam.Without(missing, l.returning[p.Name]) // R4
	clean := ipam.Common(can, r.stockOf(p).Ranges())
	p.stock.Remove(clean)
	r.give(to, p, clean, false)
	doubtful := ipam.Common(can, r.namedDoubtful(p, can))
	r.doubtfulOf(p).Remove(doubtful)
	r.give(to, p, doubtful, true)
	rest := ipam.Without(missing, ipam.Merged(slices.Concat(clean, doubtful)))
	if strange := ipam.Without(rest, p.Addresses.Ranges()); len(strange) > 0 {
		e.say("%s is not of pool %s", strings.Join(ipam.FormatList(strange), ", "), p.Name)
	}
	for _, addresses := range ipam.Common(rest, p.Addresses.Ranges()) {
		r.askBack(l, e, p, addresses)
	}
}

// namedDoubtful is what of some addresses can be given on a node's exact word
// only: quarantined ones, and those that pods have and no ledger knows of. The
// node probes them first, or its pods have them.
func (r *round) namedDoubtful(p *pool, ranges []netipx.IPRange) []netipx.IPRange {
	var quarantined []netipx.IPRange
	for _, b := range p.books {
		if b.pool != p.Name || b.state != known || b.rebuilding() {
			continue
		}
		for _, addresses := range within(ranges, b.part) {
			for run := range b.now().Within(addresses) {
				if run.Quarantine != nil {
					quarantined = append(quarantined, run.IPRange)
				}
			}
		}
	}
	quarantined = ipam.Without(ipam.Merged(quarantined), r.heldElsewhere(p))
	unknown := ipam.Without(ipam.Common(ranges, p.Addresses.Ranges()), r.heldOf(p))
	return ipam.Common(ipam.Merged(slices.Concat(quarantined, unknown)), p.Addresses.Ranges())
}

// askBack has the holders of addresses return them once they are unused.
func (r *round) askBack(l *lease, e *entry, p *pool, addresses netipx.IPRange) {
	for _, b := range p.books {
		if b.pool != p.Name || b.state != known {
			continue
		}
		for run := range b.now().Within(addresses) {
			text := ipam.FormatList(ipam.Common([]netipx.IPRange{run.IPRange}, []netipx.IPRange{addresses}))[0]
			switch holder := r.byNode[run.Node]; {
			case run.Identity != "":
				e.say("%s is pinned to %s", text, run.Identity)
			case run.Node != "" && run.Node != l.name:
				e.say("%s is held by %s", text, run.Node)
				if holder != nil && holder.standing == served {
					named := holder.entry(p.Name)
					named.revoke = append(named.revoke, ipam.Common([]netipx.IPRange{run.IPRange}, []netipx.IPRange{addresses})...)
				}
			}
		}
	}
}

// heldBy is what a node has of a pool, in order.
func (r *round) heldBy(node, pool string) []netipx.IPRange {
	var ranges []netipx.IPRange
	for _, b := range r.pools[pool].booksOf() {
		for _, run := range b.indexed().byNode[node] {
			ranges = append(ranges, run.IPRange)
		}
	}
	return ipam.Merged(ranges)
}

// booksOf is the ledgers of a pool itself; a pool that is not there has none.
func (p *pool) booksOf() []*book {
	if p == nil {
		return nil
	}
	var own []*book
	for _, b := range p.books {
		if b.pool == p.Name {
			own = append(own, b)
		}
	}
	return own
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
