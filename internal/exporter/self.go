package exporter

import (
	"errors"
	"io"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"railhead/internal/counters"
)

// self is what the exporter tells of its own process. It is small, so it stays
// on client_golang.
type self struct {
	registry *prometheus.Registry
	filter   filter
	collect  *prometheus.HistogramVec
}

func newSelf(version string, filter filter, more []prometheus.Collector) *self {
	s := &self{
		registry: prometheus.NewRegistry(),
		filter:   filter,
		collect: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rdma_exporter_collect_duration_seconds",
			Help:    "How long it took to read the devices of a network card, by what was read.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8), // to 8 s
		}, []string{"collector"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "rdma_exporter_build_info",
		Help:        "The version of railhead that runs here, and what it was built with.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version(), "goarch": runtime.GOARCH},
	})
	build.Set(1)
	s.registry.MustRegister(s.collect, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.registry.MustRegister(more...)
	return s
}

// observe notes how long a pass over a tier, or the attribution, took.
func (s *self) observe(collector string, took time.Duration) {
	s.collect.WithLabelValues(collector).Observe(took.Seconds())
}

// encode writes the metrics, and the end of the exposition where the format
// has one. What can be gathered is written beside the errors.
func (s *self) encode(w io.Writer, format expfmt.Format) error {
	families, err := s.registry.Gather()
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if s.filter.matches(f.GetName()) {
			err = errors.Join(err, encoder.Encode(f))
		}
	}
	if end, ok := encoder.(expfmt.Closer); ok {
		err = errors.Join(err, end.Close())
	}
	return err
}

// collectorName is what a tier is called in the exporter's own metrics.
func collectorName(t counters.Tier) string {
	return [counters.Tiers]string{"traffic", "errors", "slow"}[t]
}
