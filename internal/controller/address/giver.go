package address

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/granter"
	"railhead/internal/policy"
)

// giver gives nodes addresses while this replica leads.
type giver struct {
	Options

	catalog  *policy.Catalog
	cache    client.Reader // StatefulSets and metadata of pods, as informers know them
	api      client.Client // reads live, and writes as long as this replica leads
	recorder events.EventRecorder
	metrics  *metrics
}

const (
	// endpointPause is within what time a round looks at what SpiderEndpoints say:
	// they come with each pod, and hardly ever say what ledgers do not.
	endpointPause = time.Second
	// looks is how often all are looked at for who is gone, as a part of the doubt.
	looks = 3
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (g *giver) NeedLeaderElection() bool { return true }

// Start gives addresses until ctx ends.
func (g *giver) Start(ctx context.Context) error {
	known, changes := newCluster(), newSignal()
	if err := g.follow(ctx, known, changes); err != nil {
		return err
	}
	known.haunt()
	sweeper := newSweeper(g.Doubt)
	sweeper.cluster, sweeper.cache, sweeper.live, sweeper.api = known, g.cache, g.api, g.api
	sweeper.ids = &identities{cache: g.cache, live: g.api, config: g.catalog.Config}
	sweeper.config, sweeper.tell, sweeper.wake = g.catalog.Config, g.Log.Info, func() { changes.set(somethingChanged) }
	r := &rounds{
		granter:      granter.New(store{g.api, known.wroteLease}, granter.Options{Parallel: parallel}),
		confirmation: newConfirmation(g.api), cluster: known, catalog: g.catalog, sweeper: sweeper, signal: changes, metrics: g.metrics,
		recorder: g.recorder, log: g.Log, gather: g.Gather,
	}
	defer g.metrics.pools.set(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.run(ctx) })
	group.Go(func() error { return g.sweep(ctx, sweeper) })
	group.Go(func() error { return g.settings(ctx, changes) })
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

// sweep looks for who is gone.
func (g *giver) sweep(ctx context.Context, s *sweeper) error {
	for {
		if err := s.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			g.Log.Warn("not everybody could be looked at who may be gone for good", "error", err)
		}
		if err := s.rest(ctx, g.Doubt/looks); err != nil {
			return err
		}
	}
}

// settings has a round see that families or identities are switched on or off.
func (g *giver) settings(ctx context.Context, changes *signal) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-g.Changes:
			changes.set(poolsChanged)
		}
	}
}

// follow has the cluster know what there is, and from then on what changes.
func (g *giver) follow(ctx context.Context, c *cluster, changes *signal) error {
	for _, f := range []struct {
		kind    client.Object
		handler handler.EventHandler
	}{
		{&corev1.Node{}, g.ofNodes(c, changes)},
		{&v1alpha1.AddressLease{}, followed(
			func(l *v1alpha1.AddressLease) {
				if c.putLease(l) {
					changes.set(somethingChanged)
				}
			},
			func(l *v1alpha1.AddressLease) { c.removeLease(l.Name); changes.set(somethingChanged) })},
		{&v1alpha1.PoolLedger{}, followed(
			func(l *v1alpha1.PoolLedger) {
				if c.putLedger(l) {
					changes.set(somethingChanged)
				}
			},
			func(l *v1alpha1.PoolLedger) { c.removeLedger(l); changes.set(somethingChanged) })},
		{&v2beta1.SpiderIPPool{}, followed(
			func(p *v2beta1.SpiderIPPool) {
				if c.putPool(p) {
					changes.set(poolsChanged)
				}
			},
			func(p *v2beta1.SpiderIPPool) { c.removePool(p.Name); changes.set(poolsChanged) })},
		{&v2beta1.SpiderReservedIP{}, followed(
			func(*v2beta1.SpiderReservedIP) { changes.set(poolsChanged) },
			func(*v2beta1.SpiderReservedIP) { changes.set(poolsChanged) })},
		{&v2beta1.SpiderEndpoint{}, followed(
			func(e *v2beta1.SpiderEndpoint) { c.putEndpoint(e); changes.soon(endpointPause) },
			func(e *v2beta1.SpiderEndpoint) {
				c.removeEndpoint(client.ObjectKeyFromObject(e))
				changes.soon(endpointPause)
			})},
	} {
		if err := g.Watch(f.kind, f.handler).Start(ctx, nil); err != nil {
			return fmt.Errorf("watch %T: %w", f.kind, err)
		}
	}
	return nil
}

func (g *giver) ofNodes(c *cluster, changes *signal) handler.EventHandler {
	return followed(
		func(n *corev1.Node) {
			if c.putNode(n) {
				changes.set(poolsChanged) // whose affinity may be of its labels
			}
		},
		func(n *corev1.Node) { c.removeNode(n.Name) })
}
