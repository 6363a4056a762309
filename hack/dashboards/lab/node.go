// Package lab makes clusters of simulated nodes, lets time pass in them as fast
// as the machine can, and keeps what their agents' metrics were, so that
// dashboards and alerts have something to show. It starts Prometheus and
// promtool where asked to.
package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"railhead/internal/agent"
	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/exporter"
	"railhead/internal/inventory"
	"railhead/internal/simulation"
)

// Node is a simulated node and its agent. Its time is what the caller says it
// is.
type Node struct {
	sim    *simulation.Simulation
	agent  *agent.Agent
	reader *inventory.Reader
	now    *atomic.Int64 // nanoseconds since 1970
	group  *errgroup.Group
	stop   context.CancelFunc
}

// StartNode starts a node at a moment, with its files in a directory. Its agent
// runs until ctx ends or Close.
func StartNode(ctx context.Context, scenario *simulation.Scenario, dir string, at time.Time) (*Node, error) {
	n := &Node{now: &atomic.Int64{}}
	n.now.Store(at.UnixNano())
	var err error
	if n.sim, err = simulation.Start(scenario, dir, n.clock); err != nil {
		return nil, err
	}
	if err = n.startAgent(ctx); err != nil {
		return nil, errors.Join(err, n.sim.Close())
	}
	return n, nil
}

func (n *Node) clock() time.Time { return time.Unix(0, n.now.Load()) }

func (n *Node) startAgent(ctx context.Context) (err error) {
	if n.reader, err = inventory.NewReader(n.sim.Node()); err != nil {
		return err
	}
	n.agent, err = agent.New(agent.Config{
		Node: n.sim.Node(), NodeName: n.sim.NodeName(),
		Kubernetes: n.sim.RESTConfig(), PodResources: n.sim.PodResourcesSocket(),
		QPCounters: attribution.CountersAuto,
		Exporter:   exporter.Config{Intervals: exporter.DefaultIntervals(), Version: "simulated", Now: n.clock},
		Logger:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return errors.Join(err, n.reader.Close())
	}
	ctx, n.stop = context.WithCancel(ctx)
	n.group, ctx = errgroup.WithContext(ctx)
	n.group.Go(func() error { return n.agent.Watch(ctx) })
	return nil
}

// Name is the name of the node.
func (n *Node) Name() string { return n.sim.NodeName() }

// Handler serves the metrics of the node.
func (n *Node) Handler() http.Handler { return n.agent.Handler() }

// Close ends the node and its agent.
func (n *Node) Close() error {
	n.stop()
	err := n.group.Wait()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = nil // which is how it ends
	}
	return errors.Join(err, n.reader.Close(), n.sim.Close())
}

// patience is how long the agent may take to see what changed on its node.
const patience = 30 * time.Second

// Step brings the node to a moment, waits until the agent has seen what changed,
// and lets it take samples.
func (n *Node) Step(ctx context.Context, now time.Time) error {
	n.now.Store(now.UnixNano())
	if err := n.sim.Advance(now); err != nil {
		return err
	}
	if err := n.settle(ctx); err != nil {
		return fmt.Errorf("%s at %v: %w", n.Name(), now.Format(time.TimeOnly), err)
	}
	return n.sample(ctx, now)
}

// sample takes samples, again while the agent has not heard of a new pod's name.
func (n *Node) sample(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		n.agent.Exporter().Sample(ctx, now, counters.Traffic, counters.Errors, counters.Slow)
		text, err := n.Scrape(ctx)
		if err != nil || !hasNameless(text) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: its agent does not hear of a pod's name: %w", n.Name(), ctx.Err())
		}
	}
}

// hasNameless tells whether metrics name a pod by its UID only.
func hasNameless(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("rdma_pod_info{")) && !bytes.Contains(line, []byte("pod_namespace=")) {
			return true
		}
	}
	return false
}

// settle waits until the agent's inventory is what a fresh look at the node
// finds, as far as the kernel tells of changes by events.
func (n *Node) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	watcher := n.agent.Watcher()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		changed := watcher.Changed()
		seen, is := watcher.Snapshot(), inventory.Join(n.reader.Read(nil, inventory.Changes{}), inventory.Options{})
		if seen != nil && slices.Equal(told(seen), told(is)) {
			return nil
		}
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("its agent does not see what is there: %w", ctx.Err())
		}
	}
}

// told is what events tell of a node: which devices are where, and the ports of
// those that are not in a pod.
func told(s *inventory.Snapshot) []string {
	var facts []string
	for i := range s.Devices {
		d := &s.Devices[i]
		switch {
		case d.RDMA == nil:
			facts = append(facts, d.ID)
		case d.RDMA.NetNS != nil:
			facts = append(facts, d.ID+" "+d.RDMA.Name+" in a pod")
		default:
			for _, p := range d.RDMA.Ports {
				facts = append(facts, fmt.Sprint(d.ID, " ", d.RDMA.Name, p.Number, p.State, p.Gigabits))
			}
		}
	}
	return facts
}

// Scrape returns the metrics of the node as text.
func (n *Node) Scrape(ctx context.Context) ([]byte, error) {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody)
	answer := httptest.NewRecorder()
	n.Handler().ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("%s: scrape answered %d: %s", n.Name(), answer.Code, bytes.TrimSpace(answer.Body.Bytes()))
	}
	return answer.Body.Bytes(), nil
}
