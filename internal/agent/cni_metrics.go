package agent

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// lateCollectors are collectors of what is made only while the agent runs: they
// collect nothing before. It is what Prometheus calls an unchecked collector.
type lateCollectors struct {
	current atomic.Pointer[[]prometheus.Collector]
}

func (l *lateCollectors) set(collectors []prometheus.Collector) { l.current.Store(&collectors) }

// Describe implements prometheus.Collector.
func (*lateCollectors) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (l *lateCollectors) Collect(to chan<- prometheus.Metric) {
	if current := l.current.Load(); current != nil {
		for _, collector := range *current {
			collector.Collect(to)
		}
	}
}
