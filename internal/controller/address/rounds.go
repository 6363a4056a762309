package address

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam"
	"railhead/internal/ipam/granter"
	"railhead/internal/policy"
)

const (
	// parallel is how many writes a round has under way at a time.
	parallel = 16
	// resync is how often a round runs though nothing is known to have changed.
	resync = 30 * time.Second
	// backoffLeast and backoffMost bound the wait after a round that failed, and
	// after one that has to be repeated and did nothing: the watch is late.
	backoffLeast = 20 * time.Millisecond
	backoffMost  = 5 * time.Second
	// reminder is how often an error is logged that stays the same.
	reminder = 30 * time.Second
)

// rounds runs one round after the other while there is work.
type rounds struct {
	granter      *granter.Granter
	confirmation *confirmation
	cluster      *cluster
	catalog      *policy.Catalog
	sweeper      *sweeper
	signal       *signal
	metrics      *metrics
	recorder     events.EventRecorder
	log          *slog.Logger
	gather       time.Duration

	pools map[string]ipam.Pool // of the last round
	said  string               // the error that was logged last
	when  time.Time
}

// run goes on until ctx ends. Requests of the time of a round, and of a moment
// more, are one round: that is what keeps writes few under load. What fails for
// one pool or node is tried again after a while, and holds up nobody else.
func (r *rounds) run(ctx context.Context) error {
	for failures := 0; ; {
		if err := pause(ctx, r.gather); err != nil {
			return err
		}
		report, err := r.round(ctx)
		wait := resync
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil, report.Again && !isProgress(report):
			failures++
			wait = backoff(failures)
		case report.Again:
			failures, wait = 0, 0
		default:
			failures = 0
		}
		r.say(err, wait)
		if err := r.signal.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// isProgress says whether a round did anything.
func isProgress(r granter.Report) bool {
	return r.Granted+r.Returned+r.Quarantined+r.LedgerWrites+r.LeaseWrites > 0
}

// say logs an error when it is another one, and as a reminder.
func (r *rounds) say(err error, wait time.Duration) {
	if err == nil {
		r.said = ""
		return
	}
	if text := err.Error(); text != r.said || time.Since(r.when) >= reminder {
		r.log.Warn("nodes did not get all of their addresses", "error", err, "again", wait)
		r.said, r.when = text, time.Now()
	}
}

// round is one round with what is known now.
func (r *rounds) round(ctx context.Context) (granter.Report, error) {
	if r.signal.took(poolsChanged) || r.pools == nil {
		r.pools = r.cluster.viewPools(r.catalog.Reserved)
	}
	began := time.Now()
	view := r.view(ctx, began)
	unsure := r.confirmation.confirm(ctx, view.Leases, view.Nodes)
	report, err := r.granter.Round(ctx, view)
	err = errors.Join(unsure, err)
	for _, n := range report.News {
		r.tell(n)
	}
	if ctx.Err() == nil {
		r.metrics.round(report, err, time.Since(began))
	}
	return report, err
}

// tell makes an Event of what a ledger's write means to people. The version is
// named, since Events that differ in their text alone are counted as one.
func (r *rounds) tell(n granter.News) {
	severity := corev1.EventTypeNormal
	if n.Warning {
		severity = corev1.EventTypeWarning
	}
	r.recorder.Eventf(&corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "PoolLedger", Name: n.Ledger, UID: n.UID, ResourceVersion: n.ResourceVersion,
	}, nil, severity, n.Reason, "Account", "%s", n.Text)
}

// view is what is known now. What is touched is told once.
func (r *rounds) view(ctx context.Context, now time.Time) granter.View {
	return granter.View{
		Leases:       r.cluster.leaseList(),
		Pools:        r.pools,
		Nodes:        r.cluster.viewNodes(),
		Taken:        r.catalog.Taken,
		TakenBy:      r.catalog.TakenBy,
		GoneIdentity: func(identity string) bool { return r.sweeper.isIdentityGoneNow(ctx, identity) },
		GonePod:      r.sweeper.isPodGoneNow,
		Touched:      r.cluster.tookTouched(),
		Now:          now,
	}
}

// viewNodes are the nodes that are there, or may be.
func (c *cluster) viewNodes() map[string]granter.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	view := make(map[string]granter.Node, len(c.nodes)+len(c.ghosts))
	add := func(nodes map[string]*corev1.Node) {
		for name, node := range nodes {
			lease := c.leases[name]
			view[name] = granter.Node{UID: node.UID, Fenced: isOutOfService(node) || isFenced(lease, node.UID)}
		}
	}
	add(c.ghosts)
	add(c.nodes)
	return view
}

// pause waits, or returns why not.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// backoff grows with each failure, and differs from one controller to the next.
func backoff(failures int) time.Duration {
	d := min(backoffMost, backoffLeast<<min(failures-1, 10))
	return d/2 + rand.N(d/2) //nolint:gosec // of no matter to anybody's safety
}
