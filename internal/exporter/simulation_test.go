package exporter

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/inventory"
	"railhead/internal/simulation"
)

// TestShared has two pods on one device: who alone uses it has all that it
// counts, and nobody what it counts while there are two.
func TestShared(t *testing.T) {
	t.Parallel()
	clock := newClock()
	sim, reader := simulated(t, clock.now)
	snapshot := inventory.Join(reader.Read(nil, inventory.Changes{All: true}), inventory.Options{})
	for _, problem := range snapshot.Problems {
		t.Errorf("the simulated node has a problem: %s", problem)
	}
	r := &rig{t: t, clock: clock, snap: snapshot, e: newTestExporter(t, func(c *Config) {
		c.Node, c.Now = sim.Node(), clock.now
		c.Attributor = attribution.New(sim.Node().FS(), attribution.Options{QPSAtMost: attribution.DefaultQPSAtMost})
	})}
	pass := func(d time.Duration, tiers ...counters.Tier) {
		for end := clock.now().Add(d); clock.now().Before(end); {
			if err := sim.Advance(clock.now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			r.sample(5*time.Second, tiers...)
		}
	}
	const (
		device = `rdma_port_receive_bytes_total{device="mlx5_0"`
		a      = `rdma_pod_receive_bytes_total{pod_name="aaaaaaaa-0000-4000-8000-000000000000",device="mlx5_0",port="1",attribution="sole_user"`
		b      = `rdma_pod_receive_bytes_total{pod_name="bbbbbbbb-0000-4000-8000-000000000000"`
		infoA  = `rdma_pod_device_info{pod_name="aaaaaaaa-0000-4000-8000-000000000000",device="mlx5_0"`
	)
	number := func(series string) float64 {
		n, _ := strconv.ParseFloat(r.value(series), 64) // absent is zero here
		return n
	}
	pass(5 * time.Second)
	before := number(device)
	pass(50 * time.Second)
	alone := number(a)
	if gained := number(device) - before; alone != gained || alone == 0 {
		t.Errorf("the pod that is alone has %v of %v bytes", alone, gained)
	}
	r.want(map[string]string{
		`rdma_pod_qps{pod_name="aaaaaaaa-0000-4000-8000-000000000000",device="mlx5_0",qp_type="RC",state="RTS"`: "4",
		`rdma_pod_memory_regions{`:                   "3",
		`rdma_pod_memory_region_bytes{`:              strconv.Itoa(3 << 20),
		`rdma_pod_cm_ids{`:                           "2",
		`rdma_pod_contexts{`:                         "1",
		`rdma_pod_attribution_coverage_ratio{`:       "1",
		`rdma_exporter_pods{attribution="sole_user"`: "1",
		infoA: "1",
	})
	pass(20 * time.Second)
	r.want(map[string]string{`rdma_exporter_pods{attribution="shared"`: "2", `rdma_exporter_pods{attribution="sole_user"`: "0", b: ""})
	both := number(a)
	if both < alone {
		t.Errorf("with a second user the first has lost what it had: %v, then %v", alone, both)
	}
	pass(30 * time.Second)
	if number(a) != both {
		t.Errorf("bytes of two pods are counted as one's: %v, then %v", both, number(a))
	}
	if ratio := number(`rdma_pod_attribution_coverage_ratio{`); ratio <= 0 || ratio >= 1 {
		t.Errorf("coverage %v while two pods are there", ratio)
	}
	pass(30 * time.Second)
	if number(a) <= both {
		t.Errorf("alone again, the pod's bytes do not go on: %v, then %v", both, number(a))
	}
	r.want(map[string]string{`rdma_exporter_pods{attribution="shared"`: "0", `rdma_exporter_pods{attribution="sole_user"`: "1"})
	if strings.Contains(r.scrape(), `pod_name="bbbbbbbb`) {
		t.Error("series of a pod that ended are there")
	}
}

// simulated plays the scenario of shared.yaml.
func simulated(t *testing.T, now func() time.Time) (*simulation.Simulation, *inventory.Reader) {
	t.Helper()
	scenario, err := simulation.Load("testdata/shared.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simulation.Start(scenario, t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	reader, err := inventory.NewReader(sim.Node())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	return sim, reader
}

// TestRun samples in the background what a Watcher sees, until it is told to
// end, and then puts the device back.
func TestRun(t *testing.T) {
	t.Parallel()
	sim, reader := simulated(t, time.Now)
	watcher := inventory.NewWatcher(reader, inventory.Options{})
	e := newTestExporter(t, func(c *Config) {
		c.Node, c.Snapshots, c.Now = sim.Node(), watcher, time.Now
		c.Attributor = attribution.New(sim.Node().FS(), attribution.Options{})
		binder, err := attribution.NewBinder(attribution.CountersAuto, c.Attributor, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c.Binder = binder
	})
	wantMode(t, sim, "none")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- watcher.Run(ctx) }()
	go func() { ended <- e.Run(ctx) }()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for e.notReady() != "" {
		select {
		case <-again.C:
		case err := <-ended:
			t.Fatalf("it ended before it was ready (%s): %v", e.notReady(), err)
		}
	}
	if answer := get(t, e.Handler(), "/readyz", nil); answer.status != http.StatusOK {
		t.Errorf("/readyz: %d %s", answer.status, answer.text)
	}
	text := get(t, e.Handler(), "/metrics", nil).text
	for _, want := range []string{
		`rdma_port_receive_bytes_total{device="mlx5_0",port="1"`, `rdma_pod_receive_bytes_total{pod_name="aaaaaaaa`,
		`rdma_exporter_sample_age_seconds{device="mlx5_0"}`, `rdma_exporter_collect_duration_seconds_count{collector="slow"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	wantMode(t, sim, "auto")
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	}
	wantMode(t, sim, "none")
}

// wantMode checks how the first device counts queue pairs.
func wantMode(t *testing.T, sim *simulation.Simulation, want string) {
	t.Helper()
	own := sim.Node().Own()
	c, err := own.RDMA()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(c.Close(), own.Close()) }()
	devices, err := c.Devices()
	if err != nil || len(devices) == 0 {
		t.Fatalf("devices %v: %v", devices, err)
	}
	if mode, err := c.CounterMode(devices[0].Index, 1); mode.Mode != want || err != nil {
		t.Errorf("mode %q: %v, want %q", mode.Mode, err, want)
	}
}
