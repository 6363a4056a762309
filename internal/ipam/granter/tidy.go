package granter

import (
	"slices"

	"go4.org/netipx"

	"railhead/internal/ipam"
)

// tidy frees what nobody will ask for again or an administrator releases, and
// takes over the ledgers of an earlier pool of the same name.
func (r *round) tidy() {
	for _, b := range r.now().books {
		if b.state != known {
			continue
		}
		r.release(b)
		r.tidyQuarantine(b)
		r.tidyParked(b)
		if p := r.pools[b.pool]; p != nil && p.UID != "" && !p.Deleting && b.ledger.PoolUID != p.UID {
			b.change().PoolUID = p.UID
		}
		r.endRebuild(b)
	}
}

// tidyQuarantine frees addresses of pods that are gone, and hands over those of
// which another pool has become.
func (r *round) tidyQuarantine(b *book) {
	for _, run := range b.indexed().quarantined {
		pod := run.Quarantine.Pod
		if pod != "" && r.view.GonePod != nil && r.view.GonePod(pod) {
			r.edit(b, run.IPRange, func(*ipam.Run) bool { return false })
			continue
		}
		r.handOver(b, run)
	}
}

// handOver moves addresses in quarantine, which their pool has no more, to the
// ledger of the pool that has them now. They are in both until that is written:
// only the next round frees them here.
func (r *round) handOver(b *book, run ipam.Run) {
	strange := []netipx.IPRange{run.IPRange}
	if p := r.pools[b.pool]; p != nil {
		strange = ipam.Without(strange, p.Addresses.Ranges())
	}
	if len(strange) == 0 {
		return
	}
	for _, p := range r.order() {
		if p.Name == b.pool {
			continue
		}
		for here := ipam.Common(strange, p.Addresses.Ranges()); len(here) > 0; {
			heir := r.bookOf(p, here[0].From())
			r.handOverTo(heir, b, within(here, heir.part), run.Holder)
			here = ipam.Without(here, []netipx.IPRange{heir.part})
		}
	}
}

// handOverTo is handOver for addresses of one ledger.
func (r *round) handOverTo(heir, b *book, ranges []netipx.IPRange, holder ipam.Holder) {
	if heir.state != known || heir.rebuilding() {
		return
	}
	for _, addresses := range ipam.Common(ranges, heir.ledger.HeldList()) {
		r.edit(b, addresses, func(run *ipam.Run) bool { return run.Quarantine == nil })
	}
	// What was released in the heir by this round is not to come back.
	if fresh := ipam.Without(ipam.Without(ranges, heir.ledger.HeldList()), heir.now().HeldList()); len(fresh) > 0 {
		l := heir.change()
		if err := l.GiveList(fresh, holder, l.Epoch); err != nil {
			r.errs = append(r.errs, err)
		}
	}
}

// tidyParked frees addresses that are kept for an identity which is gone, or
// which lists their pool no more, or that their pool has no more.
func (r *round) tidyParked(b *book) {
	gone := func(identity string) bool { return r.view.GoneIdentity != nil && r.view.GoneIdentity(identity) }
	for _, run := range b.indexed().pinned {
		if !run.Parked() {
			continue
		}
		ranges := []netipx.IPRange{run.IPRange}
		if !gone(run.Identity) && !r.spare(run.Identity, b.pool) {
			if p := r.pools[b.pool]; p != nil {
				ranges = ipam.Without(ranges, p.Addresses.Ranges())
			}
		}
		for _, addresses := range ranges {
			r.edit(b, addresses, func(run *ipam.Run) bool {
				if run.Parked() && run.Doubtful { // its last node may run it still (R2c)
					r.quarantine(b, run, whyParted, "")
				}
				return !run.Parked()
			})
		}
	}
}

// spare says whether an identity is on a node, by its pin, and has all there
// that it wants of a pool: what is parked for it besides is of no use.
func (r *round) spare(identity, pool string) bool {
	pins := r.pins()[identity]
	if len(pins) == 0 {
		return false
	}
	var wants int64
	for _, p := range pins {
		wants = max(wants, p.wants(pool))
	}
	asks := func(node string) bool { // others will return what they have
		return slices.ContainsFunc(pins, func(p pin) bool { return p.lease.name == node })
	}
	for _, s := range of(r.now().byIdentity[identity], pool) {
		for _, run := range s.runs {
			if run.Node != "" && (asks(run.Node) || asks(run.Target)) {
				wants -= ipam.Size(run.IPRange)
			}
		}
	}
	return wants <= 0
}
