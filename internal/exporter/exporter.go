// Package exporter serves what is known of a node's RDMA devices to Prometheus:
// their counters and states, and the shares of pods.
//
// Devices are read in the background, each network card by a worker of its own,
// and a scrape is answered from memory. What it cannot tell is absent: a series
// ends when its device goes, when its pod ends, and when it could not be read
// for three intervals; none is ever served stale. It changes nothing on a
// device, but for how its queue pairs are counted where an administrator wants
// that, and keeps no network namespace but its own open between two reads.
//
// What it counts for a pod begins at zero when the pod gets a device, and is
// kept in memory only: after a restart it begins at zero again, with a new
// creation time. The series of devices are the kernel's, and go on; what those
// of counters that wrapped have come to is kept in a file.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/inventory"
	"railhead/internal/kernel/node"
)

// Config says what is exported, and from where.
type Config struct {
	Node       node.Node
	Snapshots  *inventory.Watcher      // which the caller runs
	Attributor *attribution.Attributor // nil: whose a device is, is not told
	Binder     *attribution.Binder     // of the Attributor; nil: what queue pairs count apart is not told
	Sources    map[string]func() error // who is asked in the background, as a collector: why it does not tell, nil while it does
	Intervals  [counters.Tiers]time.Duration
	Devices    Filter // by the name of the RDMA device
	Metrics    Filter // by the name of the series: rdma_out_of_buffer_total
	Compat     []Compat
	NodeName   string                 // of this node, for the label that a compatibility mode has of it
	Version    string                 // of railhead
	StateDir   string                 // where counters that wrapped are kept over a restart; empty: they begin anew
	Collectors []prometheus.Collector // what else of this process is told beside the exporter's own metrics
	Logger     *slog.Logger           // nil: nothing is logged
	Now        func() time.Time       // nil: the clock
}

// DefaultIntervals is how often the tiers are read unless an administrator
// wants it otherwise. The errors of mlx5 are 32 bits wide, and growth by more
// than half of that between two readings is taken for a reset and not counted:
// at 15 s they may grow by 143 million a second. How often that was so is told by
// rdma_exporter_setbacks_total.
func DefaultIntervals() [counters.Tiers]time.Duration {
	return [counters.Tiers]time.Duration{
		counters.Traffic: 5 * time.Second,
		counters.Errors:  15 * time.Second,
		counters.Slow:    time.Minute,
	}
}

// Exporter samples devices and serves what it has. Its methods are safe for
// concurrent use, except that Run is called once.
type Exporter struct {
	config    Config
	devices   filter
	tiers     []counters.Tier // that have a family which someone wants
	catalog   *catalog
	store     store
	self      *self
	status    status
	renderers renderers
	gzips     gzips
	landing   http.Handler
	wasReady  atomic.Bool
	awaited   awaited
	narrow    *continuity

	spiderpool, nodeExporter bool

	mu       sync.Mutex // held while a snapshot is applied
	snapshot atomic.Pointer[inventory.Snapshot]
	nics     []*nic
	facts    *section
}

// New returns an Exporter that has nothing to serve yet. The error is that of a
// filter which is no regular expression, or of an interval that is not positive.
func New(config Config) (*Exporter, error) {
	devices, errDevices := config.Devices.compile()
	metrics, errMetrics := config.Metrics.compile()
	if err := errors.Join(wrap("device filter", errDevices), wrap("metric filter", errMetrics)); err != nil {
		return nil, err
	}
	for _, mode := range config.Compat {
		if err := mode.check(); err != nil {
			return nil, err
		}
	}
	for t, interval := range config.Intervals {
		if interval <= 0 {
			return nil, fmt.Errorf("interval of tier %q: %v is not positive", collectorName(counters.Tier(t)), interval)
		}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	landing, err := newLandingPage(config.Version)
	if err != nil {
		return nil, err
	}
	e := &Exporter{
		config:  config,
		devices: devices,
		catalog: newCatalog(families(config.Compat), metrics),
		self:    newSelf(config.Version, metrics, config.Collectors),
		landing: landing,
		facts:   &section{},
		narrow:  newContinuity(&config),

		spiderpool:   slices.Contains(config.Compat, Spiderpool),
		nodeExporter: slices.Contains(config.Compat, NodeExporter),
	}
	e.tiers = e.wantedTiers()
	return e, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Run samples in the background until ctx ends, puts back what was changed on
// the devices, and returns the error of ctx.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.Release()
	e.narrow.load()
	defer e.narrow.save()
	workers := workers{}
	defer workers.stop()
	again := time.NewTicker(e.config.Intervals[counters.Traffic])
	defer again.Stop()
	for {
		changed := e.config.Snapshots.Changed()
		nics := e.apply(e.config.Snapshots.Snapshot())
		e.attribute()
		workers.keep(ctx, nics)
		e.narrow.saveAtTimes(e.config.Now())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-again.C:
		}
	}
}

// Sample reads the tiers of all devices once, and those that were never read
// whole, as if it were the given moment. It returns when all is read, or left
// to itself because it blocks. It is meant for who does not Run.
func (e *Exporter) Sample(ctx context.Context, now time.Time, tiers ...counters.Tier) {
	e.sample(ctx, e.config.Snapshots.Snapshot(), now, tiers)
}

// sample samples the devices of a snapshot.
func (e *Exporter) sample(ctx context.Context, s *inventory.Snapshot, now time.Time, tiers []counters.Tier) {
	nics := e.apply(s)
	e.attribute()
	var group sync.WaitGroup
	for _, n := range nics {
		group.Go(func() { n.pass(ctx, now, e.wanted(tiers)) })
	}
	group.Wait()
}

// wanted returns those of the tiers that have something which is exported.
func (e *Exporter) wanted(tiers []counters.Tier) []counters.Tier {
	return slices.DeleteFunc(slices.Clone(tiers), func(t counters.Tier) bool { return !slices.Contains(e.tiers, t) })
}
