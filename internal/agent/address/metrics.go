package address

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/journal"
)

// metrics count what the service does. What it has is told by gauges.
type metrics struct {
	assigns           *prometheus.HistogramVec
	failures          *prometheus.CounterVec
	writes            *prometheus.CounterVec
	syncs             prometheus.Histogram
	publications      prometheus.Histogram
	publicationErrors prometheus.Counter
	collected         prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		assigns: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "railhead_addresses_assign_duration_seconds",
			Help:    "How long it took to give a pod its addresses, and to publish those that it keeps, by whether it waited for the controller.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10), // to 26 s
		}, []string{"waited"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "railhead_addresses_assign_failures_total",
			Help: "Pods that were given no addresses, by why.",
		}, []string{"reason"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "railhead_addresses_lease_writes_total",
			Help: "How often it was tried to write the node's AddressLease, by what came of it.",
		}, []string{"result"}),
		syncs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "railhead_addresses_journal_sync_duration_seconds",
			Help:    "How long it took until records of addresses were on the disk.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9), // to 6.5 s
		}),
		publications: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "railhead_addresses_publication_delay_seconds",
			Help:    "How long after the answer a SpiderEndpoint said so.",
			Buckets: prometheus.ExponentialBuckets(0.004, 4, 9), // to 4 min
		}),
		publicationErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "railhead_addresses_publication_failures_total",
			Help: "Attempts to write or delete SpiderEndpoints that failed, and were or will be made again.",
		}),
		collected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "railhead_addresses_collected_total",
			Help: "Pods whose addresses were taken back because they were gone and nobody had said so.",
		}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.assigns, m.failures, m.writes, m.syncs, m.publications, m.publicationErrors, m.collected}
}

// countedLease counts what comes of writes of the lease, and has the lease heard
// of again once one succeeds.
type countedLease struct {
	*client

	metrics *metrics
	link    *link
}

// CreateLease implements holder.API.
func (c countedLease) CreateLease(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	made, err := c.client.CreateLease(ctx, lease)
	c.written(err)
	return made, err
}

// UpdateLease implements holder.API.
func (c countedLease) UpdateLease(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	written, err := c.client.UpdateLease(ctx, lease)
	c.written(err)
	return written, err
}

func (c countedLease) written(err error) {
	c.metrics.written(err)
	if err == nil {
		c.link.works()
	}
}

// written notes what came of an attempt to write the lease.
func (m *metrics) written(err error) {
	switch {
	case err == nil:
		m.writes.WithLabelValues("written").Inc()
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		m.writes.WithLabelValues("conflict").Inc()
	default:
		m.writes.WithLabelValues("error").Inc()
	}
}

// assigned notes that a pod got its addresses.
func (m *metrics) assigned(waited bool, took time.Duration) {
	label := "no"
	if waited {
		label = "yes"
	}
	m.assigns.WithLabelValues(label).Observe(took.Seconds())
}

// timedDisk measures how long it takes until something is on a disk.
type timedDisk struct {
	journal.Disk

	metrics *metrics
}

// Sync implements journal.Disk.
func (d timedDisk) Sync(name string) error {
	began := time.Now()
	defer func() { d.metrics.syncs.Observe(time.Since(began).Seconds()) }()
	return d.Disk.Sync(name)
}
