package standin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// fleet is all stand-ins of a run and their pods.
type fleet struct {
	Options
	client  kubernetes.Interface
	ground  ground
	nodes   map[string]*node // fixed once set up
	slots   chan struct{}    // one for each pod that may start or end at once
	started time.Time
	tally   tally

	mu   sync.Mutex
	pods map[types.UID]*life
	live sync.WaitGroup
}

func newFleet(o Options, client kubernetes.Interface) *fleet {
	return &fleet{
		Options: o,
		client:  client,
		ground:  ground{dir: o.Dir, bridge: o.Bridge},
		nodes:   map[string]*node{},
		slots:   make(chan struct{}, o.Parallel),
		started: time.Now(),
		pods:    map[types.UID]*life{},
	}
}

// setUp makes all nodes on this machine.
func (f *fleet) setUp(ctx context.Context) error {
	conflist, err := f.conflistTemplate()
	if err != nil {
		return err
	}
	all := f.Options.nodes()
	if err := f.ground.prepare(all[0].Gateways); err != nil {
		return err
	}
	var making errgroup.Group
	making.SetLimit(f.Parallel)
	for _, n := range all {
		making.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			made, err := newNode(ctx, n, f.ground, conflist, f.Plugins)
			if err != nil {
				return err
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.nodes[n.Name] = made
			return nil
		})
	}
	return making.Wait()
}

// run registers the nodes and runs their pods until the context ends.
func (f *fleet) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	defer f.live.Wait() // pods end with the context
	group.Go(func() error { return f.report(ctx) })
	registering, registered := errgroup.WithContext(ctx)
	registering.SetLimit(f.Parallel)
	for _, n := range f.nodes {
		registering.Go(func() error { return f.register(registered, n) })
	}
	if err := registering.Wait(); err != nil {
		return errors.Join(err, group.Wait())
	}
	for _, n := range f.nodes {
		group.Go(func() error { f.keepLease(ctx, n); return nil })
		group.Go(func() error { f.tellDevices(ctx, n); return nil })
	}
	group.Go(func() error { return f.watch(ctx) })
	return group.Wait()
}

// register makes a node's object, or takes over the one of an earlier run, and waits for the API server as long as it
// takes.
func (f *fleet) register(ctx context.Context, n *node) error {
	wanted := n.object(f.Taint, meta.Now())
	f.insist(ctx, "registration", n.Name, func(ctx context.Context) error {
		nodes := f.client.CoreV1().Nodes()
		created, err := nodes.Create(ctx, wanted, meta.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			if created, err = nodes.Get(ctx, n.Name, meta.GetOptions{}); err == nil {
				created.Status = wanted.Status
				created, err = nodes.UpdateStatus(ctx, created, meta.UpdateOptions{})
			}
		}
		if err != nil {
			return err
		}
		n.uid = created.UID
		f.tally.nodes.Add(1)
		return nil
	})
	return ctx.Err()
}

// farewell is how long the API server may take to hear that the nodes are gone.
const farewell = 10 * time.Second

// close removes the nodes from the API server, which is then rid of their leases and pods, and lets go of namespaces
// and sockets.
func (f *fleet) close(ctx context.Context) error {
	var errs []error
	for _, n := range f.nodes {
		errs = append(errs, n.close())
	}
	if f.tally.nodes.Load() > 0 {
		ctx, cancel := context.WithTimeout(ctx, farewell)
		defer cancel()
		if err := f.client.CoreV1().Nodes().DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: Label}); err != nil {
			errs = append(errs, fmt.Errorf("remove nodes: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Waits between attempts of insist: the first, and the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// insist tries something until it succeeds or the context ends, ever more seldom, and says so.
func (f *fleet) insist(ctx context.Context, what, whose string, try func(context.Context) error) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		err := try(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		f.Log.LogAttrs(ctx, levelOf(pause), "will try again", attrs(what, whose, err, pause)...)
		if !wait(ctx, pause) {
			return
		}
	}
}

// wait waits for a time and tells whether the context let it.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
