package granter

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
)

// withdraw empties the statuses of nodes whose addresses are taken without
// their word, before any ledger is written (R9): that proves the lease read is
// the newest one, and what another leader still has to publish conflicts.
func (r *round) withdraw(ctx context.Context) {
	var due []*lease
	all := r.now().byNode
	for _, l := range r.leases {
		if l.standing >= freed && len(all[l.name]) > 0 {
			due = append(due, l)
		}
	}
	answers, errs := make([]*v1alpha1.AddressLease, len(due)), make([]error, len(due))
	r.each(len(due), func(i int) { answers[i], errs[i] = r.store.UpdateLeaseStatus(ctx, due[i].emptied()) })
	for i, l := range due {
		l.withdrawn = r.wrote(l, answers[i], errs[i])
	}
	for _, name := range r.orphans() {
		r.withdrawOrphan(ctx, name)
	}
}

// emptied is the lease with a status that grants nothing and differs from the
// one it has: a write that changes nothing would not be one.
func (l *lease) emptied() *v1alpha1.AddressLease {
	object := l.touched()
	object.Status.Pools = nil
	return object
}

// touched is the lease with a status that differs in nothing but its reason and
// the generation it answers.
func (l *lease) touched() *v1alpha1.AddressLease {
	object := l.object.DeepCopy()
	object.Status.Reason = l.reason
	if object.Status.ObservedGeneration = object.Generation; l.object.Status.ObservedGeneration == object.Generation {
		object.Status.ObservedGeneration--
	}
	return object
}

// withdrawOrphan takes what a node has that has no lease. That there is none is
// read live: nobody can publish to a lease that is not there, and one that comes
// has its grants renewed first.
func (r *round) withdrawOrphan(ctx context.Context, name string) {
	stands, why := r.standingOfOrphan(name)
	if stands < freed {
		return
	}
	switch _, err := r.store.Lease(ctx, name); {
	case apierrors.IsNotFound(err):
		r.takeAll(name, r.now().byNode[name], stands, why)
	case err != nil:
		r.failed("lease %s: read: %w", name, err)
	}
}

// takeWithdrawn takes what nodes have whose statuses were emptied in this round.
func (r *round) takeWithdrawn() {
	all := r.now().byNode
	for _, l := range r.leases {
		if l.withdrawn {
			r.takeAll(l.name, all[l.name], l.standing, l.why)
		}
	}
}

// takeAll takes all that a node has (R2b, R2c). Pinned addresses stay with
// their identity; what a node that may still run had is doubtful from now on.
func (r *round) takeAll(node string, shares []share, stands standing, why string) {
	for _, s := range shares {
		for _, run := range s.runs {
			r.edit(s.book, run.IPRange, func(held *ipam.Run) bool {
				if !held.On(node) {
					return true
				}
				return r.taken(s.book, held, node, stands, why)
			})
		}
	}
}

// taken is what becomes of a run without a node; false: it is free.
func (r *round) taken(b *book, run *ipam.Run, node string, stands standing, why string) bool {
	n := ipam.Size(run.IPRange)
	if run.Identity != "" {
		leave(run, node)
		if stands == doubted {
			run.Doubtful = true
		}
		b.tally.returned += n
		return true
	}
	if stands == freed && !run.Doubtful {
		b.tally.returned += n
		return false
	}
	r.quarantine(b, run, why, "") // another node before this one may run still
	return true
}

// quarantine makes nobody the holder of a run, for a reason.
func (r *round) quarantine(b *book, run *ipam.Run, why, pod string) {
	run.Holder = ipam.Holder{Quarantine: &v1alpha1.Quarantine{Reason: why, Since: r.since(), Pod: pod}}
	b.tally.quarantined += ipam.Size(run.IPRange)
}

// leave takes a node from a pinned run, which stays with its identity, on the
// other node of a migration if there is one (R12).
func leave(run *ipam.Run, node string) {
	if run.Target == node {
		run.Target = ""
		return
	}
	run.Node, run.Target = run.Target, ""
}
