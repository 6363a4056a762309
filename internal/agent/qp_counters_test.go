package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/exporter"
	"railhead/internal/simulation"
)

// rig is an agent of a simulated node, for which the test makes time pass.
type rig struct {
	*Agent
	t    *testing.T
	sim  *simulation.Simulation
	unix atomic.Int64
}

func (r *rig) now() time.Time { return time.Unix(r.unix.Load(), 0) }

// newRig watches a node of a scenario until the test ends.
func newRig(t *testing.T, scenario string, policy attribution.CounterPolicy) *rig {
	t.Helper()
	r := &rig{t: t}
	r.unix.Store(1_700_000_000)
	loaded, err := simulation.Load(scenario)
	if err != nil {
		t.Fatal(err)
	}
	if r.sim, err = simulation.Start(loaded, t.TempDir(), r.now); err != nil {
		t.Fatal(err)
	}
	r.watch(Config{Node: r.sim.Node(), NodeName: r.sim.NodeName(), QPCounters: policy})
	return r
}

// watch has an agent run until the test ends, and the simulation end after it.
func (r *rig) watch(config Config) {
	r.t.Helper()
	config.Exporter = exporter.Config{Intervals: exporter.DefaultIntervals(), Now: r.now}
	var err error
	if r.Agent, err = New(config); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	ended, first := make(chan error, 1), r.Watcher().Changed()
	go func() { ended <- r.Watch(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.t.Errorf("it ended with %v", err)
		}
		if err := r.sim.Close(); err != nil {
			r.t.Error(err)
		}
	})
	<-first
}

// pass lets time pass, with samples of all tiers.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	const step = 5
	for range int(d.Seconds()) / step {
		r.unix.Add(step)
		if err := r.sim.Advance(r.now()); err != nil {
			r.t.Fatal(err)
		}
		r.Exporter().Sample(r.t.Context(), r.now(), counters.Traffic, counters.Errors, counters.Slow)
	}
}

// values are those of the series that match.
func (r *rig) values(pattern string) (values []float64) {
	r.t.Helper()
	var text strings.Builder
	if err := r.Exporter().WriteText(&text); err != nil {
		r.t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?m)^"+pattern+` (\S+)$`).FindAllStringSubmatch(text.String(), -1) {
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			r.t.Fatal(err)
		}
		values = append(values, value)
	}
	return values
}

// TestQPCounters has two pods at once on each of three devices. On two the
// kernel counts each process apart, as an administrator had set it, and what the
// pods have adds up to what the device counted; on the third nobody can tell.
func TestQPCounters(t *testing.T) {
	t.Parallel()
	for _, policy := range []attribution.CounterPolicy{"", attribution.CountersOff, attribution.CountersAuto} {
		r := newRig(t, "../../scenarios/shared.yaml", policy)
		r.pass(15 * time.Second)
		writes := func(device string) float64 {
			return r.values(`rdma_rx_write_requests_total\{device="` + device + `".*\}`)[0]
		}
		before := writes("mlx5_0")
		pods := func(device string) []float64 {
			return r.values(`rdma_pod_rx_write_requests_total\{.*device="` + device + `",port="1",attribution="qp_counter"\}`)
		}
		first := total(pods("mlx5_0"))
		r.pass(time.Minute)
		shares := pods("mlx5_0")
		if len(shares) != 2 {
			t.Fatalf("%q: %d pods have a share, want 2", policy, len(shares))
		}
		gained, told := writes("mlx5_0")-before, total(shares)-first
		const rounded = 8 // a process of four at each end
		if told > gained+rounded || told < gained-rounded || shares[0] == 0 || shares[1] == 0 {
			t.Errorf("%q: of %v writes pods have %v: %v", policy, gained, told, shares)
		}
		if others := r.values(`rdma_pod_rx_write_requests_total\{.*device="mlx5_2".*\}`); others != nil {
			t.Errorf("%q: shares %v of a device that does not count pods apart", policy, others)
		}
		if got := r.values(`rdma_exporter_pods\{attribution="qp_counter"\}`); fmt.Sprint(got) != "[2]" {
			t.Errorf("%q: %v pods are told to be counted apart, want 2", policy, got)
		}
	}
}

func total(values []float64) (all float64) {
	for _, v := range values {
		all += v
	}
	return all
}
