// Package top answers how the RDMA devices, pods and workloads of a node are
// doing right now: rates from the metrics of an agent, read again and again,
// the worst first. It never looks at the node itself, changes nothing and keeps
// nothing longer than its window.
package top

import "context"

// Source is where metrics come from: an agent, or an exporter in this process.
type Source interface {
	// Name tells a person which source it is.
	Name() string
	// Scrape returns the metrics of now in the Prometheus text format.
	Scrape(ctx context.Context) ([]byte, error)
}

// InProcess is the source of who has no agent: Render samples the devices of
// this node and writes their metrics.
type InProcess struct {
	Render func(ctx context.Context) ([]byte, error)
}

// Name tells a person which source it is.
func (InProcess) Name() string { return "this node, without an agent" }

// Scrape renders the metrics of now.
func (s InProcess) Scrape(ctx context.Context) ([]byte, error) { return s.Render(ctx) }
