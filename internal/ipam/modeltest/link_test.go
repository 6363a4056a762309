package modeltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
)

// A link is how a process reaches the API server: not always, and not always
// both ways.
type link struct {
	w     *world
	proc  *process
	gives []v1alpha1.Return // of the next request
}

var errReset = errors.New("read tcp: connection reset by peer")

// lost is what a client gets that does not know whether its request was
// carried out.
func (w *world) lost() error {
	switch w.rng.IntN(5) {
	case 0:
		return fmt.Errorf("put: %w", context.DeadlineExceeded)
	case 1:
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 1)
	case 2:
		return apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	case 3:
		return apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	}
	return errReset
}

// send carries out one request, with a pause before it and one before its
// answer. What it writes must not change any more.
func send[R any](l link, what string, write bool, effect func() (R, error)) (R, error) {
	w, none := l.w, *new(R)
	at := point{what: what, gives: l.gives}
	if write {
		at.late = func() {
			_, err := effect()
			w.note("%s of %s lands late: %v", what, l.proc.name, err)
		}
	}
	w.pause(at)
	if err := w.unreachable(l.proc); err != nil {
		return none, err
	}
	switch n := w.rng.IntN(1000); {
	case w.calm:
	case n < w.faults:
		w.seen("request lost")
		w.note("%s: request lost", what)
		return none, w.lost()
	case n < 2*w.faults && write:
		w.seen("request delayed")
		w.note("%s: request delayed", what)
		w.later(at.late)
		return none, w.lost()
	case n < 3*w.faults:
		w.seen("answer lost")
		_, err := effect()
		w.note("%s: carried out (%v), answer lost", what, err)
		return none, w.lost()
	}
	r, err := effect()
	if apierrors.IsConflict(err) {
		w.seen("conflict")
	}
	w.note("%s: %v", what, err)
	w.pause(point{what: what + " answered"})
	if e := w.unreachable(l.proc); e != nil {
		return none, e
	}
	return r, err
}

func (w *world) unreachable(p *process) error {
	switch {
	case p.cut:
		w.seen("partition")
		return fmt.Errorf("dial tcp: i/o timeout: %w", context.DeadlineExceeded)
	case w.api.down:
		w.seen("API down")
		return errors.New("dial tcp: connection refused")
	}
	return nil
}

// A store is the granter's API.
type store struct{ link }

func (s store) Ledgers(context.Context) ([]v1alpha1.PoolLedger, error) {
	return send(s.link, "list ledgers", false, func() ([]v1alpha1.PoolLedger, error) {
		var all []v1alpha1.PoolLedger
		for _, name := range s.w.api.ledgers.names() {
			all = append(all, *s.w.api.ledgers.live[name].DeepCopy())
		}
		return all, nil
	})
}

func (s store) Ledger(_ context.Context, name string) (*v1alpha1.PoolLedger, error) {
	return send(s.link, "get ledger "+name, false, func() (*v1alpha1.PoolLedger, error) { return s.w.api.ledger(name) })
}

func (s store) CreateLedger(_ context.Context, l *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error) {
	l = s.w.planted.ledger(s.w, l.DeepCopy())
	return send(s.link, "create ledger "+l.Name, true, func() (*v1alpha1.PoolLedger, error) {
		s.w.note("  %s", ledgerText{l})
		return s.w.stored(nil, l, s.w.api.createLedger)
	})
}

func (s store) UpdateLedger(_ context.Context, l *v1alpha1.PoolLedger) (*v1alpha1.PoolLedger, error) {
	l = s.w.planted.ledger(s.w, l.DeepCopy())
	return send(s.link, "update ledger "+l.Name, true, func() (*v1alpha1.PoolLedger, error) {
		s.w.note("  %s", ledgerText{l})
		return s.w.stored(s.w.api.ledgers.live[l.Name], l, s.w.api.updateLedger)
	})
}

func (s store) DeleteLedger(_ context.Context, l *v1alpha1.PoolLedger) error {
	l = l.DeepCopy()
	_, err := send(s.link, "delete ledger "+l.Name, true, func() (struct{}, error) {
		err := s.w.api.deleteLedger(l)
		if err == nil {
			s.w.forgetEpochs(l)
		}
		return struct{}{}, err
	})
	return err
}

func (s store) Lease(_ context.Context, name string) (*v1alpha1.AddressLease, error) {
	return send(s.link, "get lease "+name, false, func() (*v1alpha1.AddressLease, error) { return s.w.api.lease(name) })
}

func (s store) UpdateLeaseStatus(_ context.Context, l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	l = s.w.planted.status(s.w, l.DeepCopy())
	return send(s.link, "update status of lease "+l.Name, true, func() (*v1alpha1.AddressLease, error) {
		s.w.note("  %s", leaseText{l})
		return s.w.api.updateLeaseStatus(l)
	})
}

// A leaseAPI is the API of one node's agent.
type leaseAPI struct {
	link
	node string
}

func (a leaseAPI) Lease(context.Context) (*v1alpha1.AddressLease, error) {
	return send(a.link, "get lease "+a.node, false, func() (*v1alpha1.AddressLease, error) { return a.w.api.lease(a.node) })
}

func (a leaseAPI) CreateLease(_ context.Context, l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	l = l.DeepCopy()
	return send(a.link, "create lease "+a.node, true, func() (*v1alpha1.AddressLease, error) {
		a.w.note("  %s", leaseText{l})
		return a.w.api.createLease(l)
	})
}

func (a leaseAPI) UpdateLease(_ context.Context, l *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	l = a.w.planted.lease(a.w, l.DeepCopy())
	if a.w.planted.swallows(a.w, l) {
		a.w.note("update lease %s: not carried out", a.node)
		return l, nil
	}
	a.gives = a.newReturns(l)
	return send(a.link, "update lease "+a.node, true, func() (*v1alpha1.AddressLease, error) {
		a.w.note("  %s", leaseText{l})
		return a.w.api.updateLease(l)
	})
}

// newReturns is the returns that a lease has and the stored one lacks.
func (a leaseAPI) newReturns(l *v1alpha1.AddressLease) []v1alpha1.Return {
	now := a.w.api.leases.live[a.node]
	if now == nil || now.ResourceVersion != l.ResourceVersion {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.Spec.Returns), func(r v1alpha1.Return) bool {
		return slices.ContainsFunc(now.Spec.Returns, func(o v1alpha1.Return) bool { return reflect.DeepEqual(o, r) })
	})
}

// Texts for the trace, made only when somebody reads it.
type (
	ledgerText struct{ *v1alpha1.PoolLedger }
	leaseText  struct{ *v1alpha1.AddressLease }
)

func (l ledgerText) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ledger %s v%s epoch %d:", l.Name, l.ResourceVersion, l.Spec.Epoch)
	for _, r := range l.Spec.Runs {
		holder := r.Node
		if r.Quarantine != nil {
			holder = "quarantine(" + r.Quarantine.Reason + ")"
		}
		if r.Target != "" {
			holder += ">" + r.Target
		}
		if r.Identity != "" {
			holder += "(" + r.Identity + ")"
		}
		if r.Doubtful {
			holder += "?"
		}
		fmt.Fprintf(&b, " %s@%d=%s", r.Addresses, r.Epoch, holder)
	}
	return b.String()
}

func (l leaseText) String() string {
	return fmt.Sprintf("lease %s v%s spec{%s %s %s wants %v exact %v pins %v returns %v} status{%d %s %+v}", l.Name, l.ResourceVersion,
		l.Spec.NodeUID, l.Spec.BootID, l.Spec.Session, l.Spec.Wants, l.Spec.Exact, l.Spec.Pins, l.Spec.Returns,
		l.Status.ObservedGeneration, l.Status.NodeUID, l.Status.Pools)
}
