package address

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"railhead/internal/ipam/holder"
)

// Collectors are the metrics of the service, for a registry.
func (s *Service) Collectors() []prometheus.Collector {
	return append(s.metrics.all(), newGauges(s))
}

// gauges tell what a service has at the moment they are asked.
type gauges struct {
	service *Service

	ready, assignments, waiting, journal, unpublished, oldest *prometheus.Desc

	pools []poolGauge
}

// poolGauge is what is told of each pool.
type poolGauge struct {
	desc  *prometheus.Desc
	value func(*holder.PoolStats) int64
}

func newGauges(s *Service) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("railhead_addresses_"+name, help, labels, nil)
	}
	ofPool := func(name, help string, value func(*holder.PoolStats) int64) poolGauge {
		return poolGauge{desc(name, help, "pool"), value}
	}
	return &gauges{
		service:     s,
		ready:       desc("ready", "1 where pods can be given addresses; 0 where not, and the log says why."),
		assignments: desc("assignments", "Pods of this node that have addresses."),
		waiting:     desc("waiting", "Pods that asked for addresses and got none yet."),
		journal:     desc("journal_bytes", "Size of the journal of addresses."),
		unpublished: desc("unpublished", "SpiderEndpoints that do not say yet what they should."),
		oldest:      desc("unpublished_oldest_seconds", "For how long the oldest of the unpublished SpiderEndpoints has not said so."),
		pools: []poolGauge{
			ofPool("granted", "Addresses of a pool that this node holds.", func(p *holder.PoolStats) int64 { return int64(p.Granted) }),
			ofPool("used", "Addresses of a pool that pods of this node have.", func(p *holder.PoolStats) int64 { return int64(p.Used) }),
			ofPool("reserve", "Addresses of a pool that may be given to a pod at once.", func(p *holder.PoolStats) int64 { return int64(p.Free) }),
			ofPool("reserve_limit", "How many addresses of a pool the node may hold beyond its needs.", func(p *holder.PoolStats) int64 { return p.Reserve }),
			ofPool("pinned", "Addresses of a pool that are granted to identities, in use or not.", func(p *holder.PoolStats) int64 { return int64(p.Pinned) }),
			ofPool("returning", "Addresses of a pool that this node gives back, which the controller has not confirmed.", func(p *holder.PoolStats) int64 { return int64(p.Returning) }),
			ofPool("recalled", "Addresses of a pool that the controller would like back.", func(p *holder.PoolStats) int64 { return p.Recall }),
			ofPool("conflicts", "Addresses of a pool that pods have and the node does not hold: the cluster was restored, or the node fenced while it ran.",
				func(p *holder.PoolStats) int64 { return int64(p.Conflicts) }),
		},
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.ready, g.assignments, g.waiting, g.journal, g.unpublished, g.oldest} {
		to <- d
	}
	for _, p := range g.pools {
		to <- p.desc
	}
}

// Collect implements prometheus.Collector. Before the journal was read, nothing
// is told but that.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	isReady := 0.
	if g.service.Ready() == nil {
		isReady = 1
	}
	tell(g.ready, isReady)
	if !g.service.isOpen() {
		return
	}
	stats := g.service.holder.Stats()
	tell(g.assignments, float64(stats.Assignments))
	tell(g.waiting, float64(stats.Waiting))
	tell(g.journal, float64(stats.JournalBytes))
	count, oldest := g.service.publish.lag(time.Now())
	tell(g.unpublished, float64(count))
	tell(g.oldest, oldest.Seconds())
	for i := range stats.Pools {
		for _, p := range g.pools {
			tell(p.desc, float64(p.value(&stats.Pools[i])), stats.Pools[i].Pool)
		}
	}
}
