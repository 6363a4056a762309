package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"golang.org/x/sync/errgroup"

	"railhead/internal/simulation"
)

// Member is a node of a Cluster.
type Member struct {
	Cluster  string        // its label cluster; empty for none
	Scenario string        // its file
	Name     string        // of the node, where it shall not be that of the scenario
	Gone     time.Duration // when its exporter stops to answer; zero for never
}

// Cluster is a number of simulated nodes that have the same time.
type Cluster struct {
	members []Member
	nodes   []*Node
}

// StartCluster starts its nodes at a moment, with their files below a directory.
func StartCluster(ctx context.Context, members []Member, dir string, at time.Time) (*Cluster, error) {
	c := &Cluster{members: members}
	for i, m := range members {
		scenario, err := simulation.Load(m.Scenario)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if m.Name != "" {
			scenario.Node, scenario.Seed = m.Name, scenario.Seed+uint64(i)
		}
		n, err := StartNode(ctx, scenario, filepath.Join(dir, fmt.Sprint("node", i)), at)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.nodes = append(c.nodes, n)
	}
	return c, nil
}

// Nodes returns the nodes in the order of the members.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Close ends all nodes.
func (c *Cluster) Close() error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// Step brings all nodes to a moment.
func (c *Cluster) Step(ctx context.Context, now time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		group.Go(func() error { return n.Step(ctx, now) })
	}
	return group.Wait()
}

// record lets time pass from the start of a history and writes down what a
// Prometheus would have scraped.
func (c *Cluster) record(ctx context.Context, h *History, steps int) error {
	for step := range steps {
		now := h.Start.Add(time.Duration(step) * h.Step)
		if err := c.Step(ctx, now); err != nil {
			return err
		}
		for i, n := range c.nodes {
			if err := c.scrape(ctx, h, step, c.members[i], n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) scrape(ctx context.Context, h *History, step int, m Member, n *Node) error {
	target := map[string]string{"job": "railhead", "instance": n.Name()}
	if m.Cluster != "" {
		target["cluster"] = m.Cluster
	}
	up := withTarget(labels.FromStrings(metricName, "up"), target)
	if m.Gone > 0 && time.Duration(step)*h.Step >= m.Gone {
		h.Set(step, up, 0)
		return nil
	}
	h.Set(step, up, 1)
	text, err := n.Scrape(ctx)
	if err != nil {
		return err
	}
	return h.add(step, target, text)
}

// Simulate makes the history of a cluster, in a directory that it removes.
func Simulate(ctx context.Context, members []Member, h *History, steps int) (err error) {
	dir, err := os.MkdirTemp("", "railhead-lab-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c, err := StartCluster(ctx, members, dir, h.Start)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.record(ctx, h, steps)
}
