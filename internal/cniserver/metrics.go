package cniserver

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what the server does.
type metrics struct {
	requests    *prometheus.CounterVec
	steps       *prometheus.HistogramVec
	attachments prometheus.GaugeFunc
	unsettled   prometheus.GaugeFunc
	repairs     prometheus.Counter
	conflicts   *prometheus.CounterVec
	patches     prometheus.Counter
	ready       *readiness
}

func newMetrics(attachments, unsettled func() float64, needs func() []need) *metrics {
	return &metrics{
		ready: newReadiness(needs),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "railhead_cni_requests_total",
			Help: "CNI calls of the container runtime, by verb and by what came of them.",
		}, []string{"verb", "result"}),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "railhead_attach_duration_seconds",
			Help:    "How long the steps of attaching a pod took, and the whole of it.",
			Buckets: []float64{0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
		}, []string{"step"}),
		attachments: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "railhead_attachments",
			Help: "Sandboxes of pods that are attached, or are being attached or detached.",
		}, attachments),
		unsettled: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "railhead_attachments_unsettled",
			Help: "Sandboxes of an earlier run of the agent that it has yet to look at or to put right. Other pods come and go meanwhile.",
		}, unsettled),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "railhead_cni_repairs_total",
			Help: "What the agent found other than it had left it when it started, and put right or told of.",
		}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "railhead_address_conflicts_total",
			Help: "Addresses of pods that another host was seen to have or to want, by the netdev below the rail.",
		}, []string{"parent"}),
		patches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "railhead_cni_status_failures_total",
			Help: "Attempts to write the network status of a pod that failed, and were or will be made again.",
		}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.steps, m.attachments, m.unsettled, m.repairs, m.conflicts, m.patches, m.ready}
}
