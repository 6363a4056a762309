package agent

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"railhead/internal/counters"
	"railhead/internal/exporter"
	"railhead/internal/simulation"
)

// shipped starts a simulation of a scenario that is shipped.
func shipped(t *testing.T, name string) *simulation.Simulation {
	t.Helper()
	scenario, err := simulation.Load(filepath.Join("..", "..", "scenarios", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulation.Start(scenario, t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// families scrapes an agent.
func families(t *testing.T, a *Agent) (map[string]*dto.MetricFamily, []byte) {
	t.Helper()
	response := httptest.NewRecorder()
	a.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	text := response.Body.Bytes()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	list, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return list, text
}

// TestSpecification wants every name of the specification on a simulated mlx5
// node, a counter or a gauge as it is in truth, and Prometheus' own rules kept.
func TestSpecification(t *testing.T) {
	t.Parallel()
	got, text := families(t, start(t, shipped(t, "healthy")))
	for _, spec := range counters.SpecNames() {
		family, want := got["rdma_"+spec+"_total"], dto.MetricType_COUNTER
		if strings.HasSuffix(spec, "_mbps") {
			family, want = got["rdma_"+spec], dto.MetricType_GAUGE
		}
		if family.GetType() != want || len(family.GetMetric()) == 0 {
			t.Errorf("%s: %d series of type %s, want some of type %s", spec, len(family.GetMetric()), family.GetType(), want)
		}
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestRestart wants what pods have to begin anew with another agent, and what
// devices have counted to go on.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := shipped(t, "healthy")
	var device, pod [2]float64
	for i := range 2 {
		now := time.Now().Add(time.Duration(i+1) * 10 * time.Minute)
		if err := s.Advance(now); err != nil {
			t.Fatal(err)
		}
		a := start(t, s)
		if err := s.Advance(now.Add(time.Duration(2-i) * time.Minute)); err != nil { // the second time half as long
			t.Fatal(err)
		}
		a.Exporter().Sample(t.Context(), time.Now(), counters.Traffic)
		got, _ := families(t, a)
		device[i] = sum(got["rdma_port_receive_bytes_total"])
		pod[i] = sum(got["rdma_pod_receive_bytes_total"])
	}
	if device[1] <= device[0] {
		t.Errorf("devices received %g bytes before the restart and %g after it", device[0], device[1])
	}
	if pod[1] == 0 || pod[1] >= pod[0] {
		t.Errorf("pods received %g bytes in two minutes with the first agent and %g in one with the second", pod[0], pod[1])
	}
}

func sum(f *dto.MetricFamily) float64 {
	total := 0.0
	for _, m := range f.GetMetric() {
		total += m.GetCounter().GetValue()
	}
	return total
}

// TestNew wants what cannot work to be refused before anything runs.
func TestNew(t *testing.T) {
	t.Parallel()
	s := shipped(t, "healthy")
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"device filter": {func(c *Config) { c.Exporter.Devices.Include = "mlx5_(" }, "device filter: include"},
		"interval":      {func(c *Config) { c.Exporter.Intervals[counters.Errors] = 0 }, `interval of tier "errors"`},
		"QP counters":   {func(c *Config) { c.QPCounters = "on" }, `"on", want "off", "auto" or "bind"`},
		"compatibility": {func(c *Config) { c.Exporter.Compat = []exporter.Compat{"telegraf"} }, `"telegraf"`},
	} {
		config := Config{Node: s.Node(), Exporter: exporter.Config{Intervals: exporter.DefaultIntervals()}}
		test.change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

// TestRun runs an agent until it is told to end.
func TestRun(t *testing.T) {
	t.Parallel()
	s := shipped(t, "shared")
	a, err := New(Config{
		Node: s.Node(), NodeName: s.NodeName(), Kubernetes: s.RESTConfig(), PodResources: s.PodResourcesSocket(),
		Exporter: exporter.Config{Intervals: exporter.DefaultIntervals()},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	changed, ended := a.Watcher().Changed(), make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-changed
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("Run ended with %v", err)
	}
}
