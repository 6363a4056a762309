package granter

import (
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/ipam"
)

// takeBack takes what nodes give back, and what they cannot have any more.
func (r *round) takeBack() {
	all := r.now().byNode // as it was: what is edited is looked at again
	for _, l := range r.leases {
		if l.standing == served || l.standing == waiting && l.object.Spec.NodeUID == l.object.Status.NodeUID {
			for i := range l.returns {
				r.takeReturned(l.name, all[l.name], &l.returns[i])
			}
		}
	}
	r.takeWithdrawn()
}

// takeReturned takes what a node gives back, where it has it by the very grant
// that it names (R2a): an address that it was granted since, or that is
// another's, is not meant.
func (r *round) takeReturned(node string, shares []share, back *giveBack) {
	meant := func(run *ipam.Run) bool { return run.On(node) && run.Epoch == back.epoch }
	for _, s := range of(shares, back.pool) {
		for _, addresses := range within(back.ranges, s.book.part) {
			if r.any(s.book, addresses, meant) {
				r.edit(s.book, addresses, func(run *ipam.Run) bool {
					return !meant(run) || r.returned(s.book, run, node, back.quarantine)
				})
			}
		}
	}
}

// returned is what becomes of a run that a node gave back; false: it is free.
func (r *round) returned(b *book, run *ipam.Run, node, quarantine string) bool {
	b.tally.returned += ipam.Size(run.IPRange)
	switch {
	case run.Identity != "":
		leave(run, node) // R12
		run.Doubtful = run.Doubtful && run.Node != "" || quarantine != ""
		return true
	case quarantine != "":
		r.quarantine(b, run, quarantine, "")
		return true
	}
	return false
}

// renew grants again, under a new epoch, what a node holds and its status does
// not show: it was never published, or it was withdrawn when the node was taken
// for dead, at a time when its ledger could not be read or written, perhaps. A
// return of it that was said before is of an older epoch then, and what another
// leader knows of it is no more current.
func (r *round) renew() {
	all := r.now().byNode
	for _, l := range r.leases {
		if l.standing != served || r.holds(l) {
			continue
		}
		fresh := l.object.Status.NodeUID == ""
		if fresh && len(all[l.name]) == 0 && len(r.now().unknown) == 0 {
			l.begun = true
		}
		for _, s := range all[l.name] {
			if s.book.state == known && !s.book.rebuilding() {
				r.renewUnshown(s, l.shown[s.book.pool], fresh && !l.begun)
			}
		}
	}
}

// renewUnshown grants again what a node has of a ledger beyond what it is shown.
// Where the lease itself was deleted, an earlier machine of that name may have
// held it, which may run still: it is in doubt then.
func (r *round) renewUnshown(s share, shown []grant, doubt bool) {
	for i := range s.runs {
		fresh := unshown(s.runs[i].IPRange, shown)
		for _, addresses := range ipam.Without(fresh, r.disputed(s.book, fresh)) {
			r.edit(s.book, addresses, func(run *ipam.Run) bool {
				run.Epoch = s.book.ledger.Epoch + 1
				run.Doubtful = run.Doubtful || doubt
				return true
			})
		}
	}
}

// edit changes what a ledger says of a range.
func (r *round) edit(b *book, addresses netipx.IPRange, change func(*ipam.Run) bool) {
	if b.state == known {
		b.change().Change([]netipx.IPRange{addresses}, change)
	}
}

// any says whether a run within a range is meant.
func (r *round) any(b *book, addresses netipx.IPRange, meant func(*ipam.Run) bool) bool {
	if b.state != known {
		return false
	}
	for run := range b.now().Within(addresses) {
		if meant(&run) {
			return true
		}
	}
	return false
}

// within is what of ranges is in a part.
func within(ranges []netipx.IPRange, part netipx.IPRange) []netipx.IPRange {
	return ipam.Common(ranges, []netipx.IPRange{part})
}

// since is the time of a quarantine that begins now, as the API server keeps it.
func (r *round) since() metav1.Time { return metav1.NewTime(r.view.Now).Rfc3339Copy() }
