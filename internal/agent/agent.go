// Package agent is the agent of one node: it puts together the packages that
// know, count and tell what the node's RDMA devices do, and runs them.
//
// It decides nothing itself. What it is given, be it a running kernel or a
// simulated one, it takes as the node.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"railhead/internal/agent/address"
	"railhead/internal/attribution"
	"railhead/internal/attribution/kube"
	"railhead/internal/attribution/podresources"
	"railhead/internal/exporter"
	"railhead/internal/inventory"
	"railhead/internal/kernel/node"
)

// Config says of which node it is the agent, and what it may ask.
type Config struct {
	Node         node.Node
	Rails        []string                  // in order; empty for the PCI order
	Kubernetes   *rest.Config              // nil: pods show by their UID
	PodResources string                    // the kubelet's socket; empty: the kubelet is not asked
	QPCounters   attribution.CounterPolicy // empty: attribution.CountersOff
	QPSAtMost    int                       // see attribution.Options; 0: attribution.DefaultQPSAtMost, negative: never
	AddressesDir string                    // of the journal of pods' addresses; empty, or without Kubernetes: pods are given none
	CNI          *CNI                      // how the container runtime is served; nil: it is not
	Namespace    string                    // of Railhead in Kubernetes, where its settings are; for CNI
	// Exporter's Node, Snapshots, Attributor, Binder, Sources, Collectors, NodeName and Logger are filled in.
	Exporter exporter.Config
	NodeName string       // what Kubernetes calls the node
	Logger   *slog.Logger // nil: nothing is logged
}

// Agent runs what a node needs. It is made by [New] and run once.
type Agent struct {
	reader     *inventory.Reader
	watcher    *inventory.Watcher
	exporter   *exporter.Exporter
	addresses  *address.Service              // nil: pods are given none
	networking *networking                   // nil: the container runtime is not served
	served     chan struct{}                 // closed once the container runtime is served no more, or is not at all
	sources    []func(context.Context) error // what is asked in the background
}

// New puts an agent together. It reads nothing before it is run, and needs no
// privilege until then. A policy for counters of queue pairs that there is not is
// an error, which names those there are.
func New(config Config) (*Agent, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Agent{served: make(chan struct{})}
	e := config.Exporter
	options := attribution.Options{QPSAtMost: cmp.Or(config.QPSAtMost, attribution.DefaultQPSAtMost)}
	if config.Kubernetes != nil {
		pods, err := kube.New(config.Kubernetes, config.NodeName, config.Logger)
		if err != nil {
			return nil, fmt.Errorf("access to Kubernetes: %w", err)
		}
		options.Pods, e.Sources = pods, map[string]func() error{"kubernetes": pods.Err}
		a.sources = append(a.sources, pods.Run)
		if err := a.giveAddresses(&config, pods); err != nil {
			return nil, err
		}
		if err := a.serveRuntime(&config); err != nil {
			return nil, err
		}
	}
	if config.PodResources != "" {
		kubelet := podresources.New(config.PodResources, config.Logger)
		options.Allocations = kubelet
		a.sources = append(a.sources, kubelet.Run)
	}
	attributor := attribution.New(config.Node.FS(), options)
	binder, err := attribution.NewBinder(cmp.Or(config.QPCounters, attribution.CountersOff), attributor, config.Logger)
	if err != nil {
		return nil, err
	}
	if a.reader, err = inventory.NewReader(config.Node); err != nil {
		return nil, err
	}
	a.watcher = inventory.NewWatcher(a.reader, inventory.Options{Rails: config.Rails})
	reporter := reporter{watcher: a.watcher, node: config.NodeName, log: config.Logger, last: &counts{-1, 0, 0}}
	a.sources = append(a.sources, reporter.report)
	e.Node, e.Snapshots, e.NodeName, e.Logger = config.Node, a.watcher, config.NodeName, config.Logger
	e.Attributor, e.Binder = attributor, binder
	if a.addresses != nil {
		e.Collectors = a.addresses.Collectors()
	}
	if a.networking != nil {
		e.Collectors = append(e.Collectors, &a.networking.metrics)
	}
	if a.exporter, err = exporter.New(e); err != nil {
		return nil, errors.Join(err, a.reader.Close())
	}
	return a, nil
}

// giveAddresses has pods given addresses, if the agent is to.
func (a *Agent) giveAddresses(config *Config, pods attribution.PodSource) (err error) {
	if config.AddressesDir == "" {
		return nil
	}
	a.addresses, err = address.New(address.Config{
		Node: config.Node, NodeName: config.NodeName, Kubernetes: config.Kubernetes, Dir: config.AddressesDir,
		Pods: pods, Logger: config.Logger,
	})
	if err != nil {
		return fmt.Errorf("addresses of pods: %w", err)
	}
	a.sources = append(a.sources, outlive(a.addresses.Run, a.served))
	return nil
}

// outlive runs something until its context has ended and others are done, who need
// it to come to their end.
func outlive(run func(context.Context) error, done <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cancel(nil)
		stop := context.AfterFunc(ctx, func() {
			<-done
			cancel(context.Cause(ctx))
		})
		defer stop()
		return run(longer)
	}
}

// Handler serves the metrics and the agent's health.
func (a *Agent) Handler() http.Handler { return a.exporter.Handler() }

// Exporter samples the node's devices.
func (a *Agent) Exporter() *exporter.Exporter { return a.exporter }

// Watcher has the node's inventory.
func (a *Agent) Watcher() *inventory.Watcher { return a.watcher }

// Run watches, asks and samples until ctx ends, or until one of these cannot go
// on, and returns why.
func (a *Agent) Run(ctx context.Context) error {
	return errors.Join(a.run(ctx, a.exporter.Run), a.clear(), a.reader.Close())
}

// Watch does what Run does, except that samples are taken only when the caller
// asks the exporter for them. None changes a device after it has ended.
func (a *Agent) Watch(ctx context.Context) error {
	defer a.exporter.Release()
	return errors.Join(a.run(ctx), a.reader.Close())
}

func (a *Agent) run(ctx context.Context, more ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.watcher.Run(ctx) })
	for _, run := range append(more, a.sources...) {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}
