package controller

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"railhead/api/spiderpool/v2beta1"
)

// metricsHandler serves our metrics and those of controller-runtime, whose
// registry is the process's.
func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	both := prometheus.Gatherers{registry, metrics.Registry}
	mux.Handle("GET /metrics", promhttp.HandlerFor(both, promhttp.HandlerOpts{}))
	return mux
}

// register has what the controller knows counted when it is asked for.
func (c *controller) register() error {
	states := []struct {
		name, help string
		state      string
		value      func() int
	}{
		{"pools", "SpiderIPPools, by whether they keep the rules.", "valid", func() int { return len(c.catalog.Pools()) }},
		{"pools", "SpiderIPPools, by whether they keep the rules.", "invalid", func() int {
			return c.feed.count(&v2beta1.SpiderIPPool{}) - len(c.catalog.Pools())
		}},
		{"networks", "SpiderMultusConfigs, by whether they keep the rules.", "valid", func() int { return len(c.catalog.Networks()) }},
		{"networks", "SpiderMultusConfigs, by whether they keep the rules.", "invalid", func() int {
			return c.feed.count(&v2beta1.SpiderMultusConfig{}) - len(c.catalog.Networks())
		}},
	}
	var errs []error
	for _, s := range states {
		errs = append(errs, c.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "railhead", Subsystem: "controller", Name: s.name, Help: s.help, ConstLabels: prometheus.Labels{"state": s.state},
		}, func() float64 { return float64(max(0, s.value())) })))
	}
	errs = append(errs, c.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "railhead", Subsystem: "controller", Name: "settings_valid",
		Help: "Whether the ConfigMap with settings was understood; if not, the last good ones are in force.",
	}, func() float64 {
		if c.settings.isValid() {
			return 1
		}
		return 0
	})))
	return errors.Join(errs...)
}
