package granter

import (
	"slices"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
)

// told is a grant of a lease's status, and whose.
type told struct {
	grant

	node string
}

// toldOf is what statuses grant of a part, the newest grants first.
func (r *round) toldOf(b *book) []told {
	var all []told
	for _, l := range r.leases {
		for _, g := range l.shown[b.pool] {
			for _, addresses := range within([]netipx.IPRange{g.IPRange}, b.part) {
				cut := g
				cut.IPRange = addresses
				all = append(all, told{cut, l.name})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b told) int { return int(b.epoch - a.epoch) })
	return all
}

// shownIn says whether a status grants an address of a part.
func (r *round) shownIn(pool string, part netipx.IPRange) bool {
	return slices.ContainsFunc(r.leases, func(l *lease) bool {
		return slices.ContainsFunc(l.shown[pool], func(g grant) bool { return g.Overlaps(part) })
	})
}

// lastEpoch is the last epoch that leases know of a pool.
func (r *round) lastEpoch(pool string) int64 {
	var last int64
	for _, l := range r.leases {
		for _, g := range l.shown[pool] {
			last = max(last, g.epoch)
		}
		for i := range l.returns {
			if l.returns[i].pool == pool {
				last = max(last, l.returns[i].epoch)
			}
		}
	}
	return last
}

// endRebuild opens a ledger again once all leases were written since it was made.
func (r *round) endRebuild(b *book) {
	if r.unseen || b.next != nil && b.ledger.Meta.ResourceVersion == "" || !b.rebuilding() {
		return
	}
	for _, l := range r.leases {
		if b.told[l.name] != l.object.UID {
			return
		}
	}
	delete(b.change().Meta.Annotations, v1alpha1.AnnotationRebuilding)
	b.say(News{Reason: NewsRebuilt, Text: "was made again after its loss, and gives addresses"})
}

// untold says whether a lease is still to be written for a rebuilt ledger.
func (r *round) untold(l *lease) bool {
	for _, b := range r.now().rebuilding {
		if b.told[l.name] != l.object.UID {
			return true
		}
	}
	return false
}

// tell notes that a lease was written after ledgers were made again.
func (r *round) tell(l *lease) {
	for _, b := range r.now().rebuilding {
		if b.next == nil {
			if b.told == nil {
				b.told = map[string]types.UID{}
			}
			b.told[l.name] = l.object.UID
		}
	}
}
