package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what was asked and how long answers took.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "railhead_controller_admission_requests_total",
			Help: "Admission requests by webhook, kind and verdict: allowed, changed, refused by a rule, or failed.",
		}, []string{"webhook", "kind", "verdict"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "railhead_controller_admission_duration_seconds",
			Help:    "Time from an admission request's arrival to its verdict.",
			Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2.5},
		}, []string{"webhook"}),
	}
	registry.MustRegister(m.requests, m.duration)
	return m
}

func (m *metrics) answered(webhook, kind, verdict string, took time.Duration) {
	m.requests.WithLabelValues(webhook, kindLabel(kind), verdict).Inc()
	m.duration.WithLabelValues(webhook).Observe(took.Seconds())
}

// malformed counts what is no admission request, and so is about no kind.
func (m *metrics) malformed(webhook string) {
	m.requests.WithLabelValues(webhook, kindLabel(""), failed).Inc()
}

// kindLabel keeps the label's values few, whoever asks.
func kindLabel(kind string) string {
	switch kind {
	case "Pod", "Namespace", "SpiderIPPool", "SpiderSubnet", "SpiderReservedIP", "SpiderEndpoint", "SpiderCoordinator",
		"SpiderMultusConfig", "NetworkAttachmentDefinition", "SriovNetworkNodePolicy":
		return kind
	}
	return "other"
}
