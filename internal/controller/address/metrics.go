package address

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"railhead/internal/ipam/granter"
)

// metrics are those of the leader. Series of pools are absent while this replica
// does not lead.
type metrics struct {
	rounds, errors                       prometheus.Counter
	ledgerWrites, leaseWrites, conflicts prometheus.Counter
	granted, returned, quarantined       prometheus.Counter
	seconds                              prometheus.Histogram
	pools                                *poolMetrics
}

const namespace, subsystem = "railhead", "addresses"

func newMetrics(registry prometheus.Registerer, used func(pool string) int64) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help})
	}
	m := &metrics{
		rounds:       counter("rounds_total", "Rounds in which nodes were given addresses, or nothing was to do."),
		errors:       counter("round_errors_total", "Rounds that failed in part, and were made up for by a later one."),
		ledgerWrites: counter("ledger_writes_total", "Writes of PoolLedgers: each commits what many nodes asked for."),
		leaseWrites:  counter("lease_status_writes_total", "Writes of the status of AddressLeases."),
		conflicts:    counter("write_conflicts_total", "Writes that another one came before, and that were decided anew."),
		granted:      counter("granted_total", "Addresses that nodes were granted."),
		returned:     counter("returned_total", "Addresses that nodes gave back."),
		quarantined:  counter("quarantined_total", "Addresses that were put into quarantine."),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "round_duration_seconds",
			Help:    "Time from the beginning of a round until its last write was answered.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}),
		pools: newPoolMetrics(used),
	}
	if registry == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{
		m.rounds, m.errors, m.ledgerWrites, m.leaseWrites, m.conflicts, m.granted, m.returned, m.quarantined, m.seconds, m.pools,
	} {
		errs = append(errs, registry.Register(c))
	}
	return m, errors.Join(errs...)
}

// round counts a round.
func (m *metrics) round(report granter.Report, err error, took time.Duration) {
	m.rounds.Inc()
	if err != nil {
		m.errors.Inc()
	}
	m.ledgerWrites.Add(float64(report.LedgerWrites))
	m.leaseWrites.Add(float64(report.LeaseWrites))
	m.conflicts.Add(float64(report.Conflicts))
	m.granted.Add(float64(report.Granted))
	m.returned.Add(float64(report.Returned))
	m.quarantined.Add(float64(report.Quarantined))
	m.seconds.Observe(took.Seconds())
	m.pools.set(report.Pools)
}

// poolMetrics are the series of pools, made of the last round when they are
// asked for.
type poolMetrics struct {
	used   func(pool string) int64
	series []poolSeries

	mu     sync.Mutex
	report map[string]granter.PoolReport // nil: this replica does not lead
}

// poolSeries is one number of a pool.
type poolSeries struct {
	desc  *prometheus.Desc
	value func(name string, r granter.PoolReport) int64
}

func newPoolMetrics(used func(pool string) int64) *poolMetrics {
	p := &poolMetrics{used: used}
	for _, s := range []struct {
		name, help string
		value      func(string, granter.PoolReport) int64
	}{
		{"size", "Addresses that a pool may give.", func(_ string, r granter.PoolReport) int64 { return r.Total }},
		{"held", "Addresses that nodes hold, for pods or in reserve.", func(_ string, r granter.PoolReport) int64 { return r.Held }},
		{"used", "Addresses that pods have, as their SpiderEndpoints say.", func(name string, _ granter.PoolReport) int64 { return used(name) }},
		{"free", "Addresses that nobody holds.", func(_ string, r granter.PoolReport) int64 { return r.Free }},
		{"reserve", "Addresses that nodes hold beyond what they need.", func(_ string, r granter.PoolReport) int64 { return r.Reserve }},
		{"pinned", "Addresses that pods keep over their lives.", func(_ string, r granter.PoolReport) int64 { return r.Pinned }},
		{"parked", "Addresses that pods keep which are on no node now.", func(_ string, r granter.PoolReport) int64 { return r.Parked }},
		{"quarantined", "Addresses that nobody has for now, since somebody may still use them.", func(_ string, r granter.PoolReport) int64 { return r.Quarantined }},
		{"recalled", "Addresses that nodes are asked to give back, since others need them.", func(_ string, r granter.PoolReport) int64 { return r.Recalled }},
		{"short", "Addresses that nodes need and did not get.", func(_ string, r granter.PoolReport) int64 { return r.Short }},
	} {
		p.series = append(p.series, poolSeries{prometheus.NewDesc(namespace+"_"+subsystem+"_pool_"+s.name, s.help, []string{"pool"}, nil), s.value})
	}
	return p
}

func (p *poolMetrics) set(report map[string]granter.PoolReport) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report = report
}

// Describe implements prometheus.Collector.
func (p *poolMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, s := range p.series {
		descriptions <- s.desc
	}
}

// Collect implements prometheus.Collector.
func (p *poolMetrics) Collect(series chan<- prometheus.Metric) {
	p.mu.Lock()
	report := p.report
	p.mu.Unlock()
	if report == nil {
		return
	}
	for name, r := range report {
		for _, s := range p.series {
			series <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(s.value(name, r)), name)
		}
	}
}
