package agent

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"railhead/internal/counters"
	"railhead/internal/exporter"
	"railhead/internal/simulation"
	"railhead/internal/versus"
)

// BenchmarkAgent is an agent on a simulated node of 8 PF, 128 VF and 100 pods: a
// minute with the default intervals in which it is scraped every 5 s, with the
// simulation's part of the CPU time; what it keeps in memory, without what the
// simulation does; and a scrape, beside the copying of as many bytes.
func BenchmarkAgent(b *testing.B) {
	s := simulate(b)
	_, stop := run(b, s)
	stop() // what the simulation made for the first questions is there now
	before := heap()
	a := start(b, s)
	handler := a.Handler()
	b.Run("minute", func(b *testing.B) {
		now := time.Now()
		cpu := cpuTime()
		for b.Loop() {
			for second := 0; second < 60; second += 5 {
				now = now.Add(5 * time.Second)
				a.Exporter().Sample(b.Context(), now, due(second)...)
				scrape(b, handler)
			}
		}
		b.ReportMetric((cpuTime()-cpu).Seconds()/float64(b.N)*100/60, "%core")
		b.ReportMetric(float64(heap()-before), "kept-B")
	})
	b.Run("scrape", func(b *testing.B) {
		answer := &body{header: http.Header{}}
		request := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", http.NoBody)
		serve := func() error {
			answer.Reset()
			handler.ServeHTTP(answer, request)
			return nil
		}
		if err := serve(); err != nil {
			b.Fatal(err)
		}
		text, copied := bytes.Clone(answer.Bytes()), make([]byte, answer.Len())
		versus.Floor(b, serve, func() error { copy(copied, text); return nil })
		b.ReportMetric(float64(bytes.Count(text, []byte("\nrdma_"))), "series")
	})
}

// body is a response that is kept, in memory that is used again.
type body struct {
	bytes.Buffer

	header http.Header
}

func (b *body) Header() http.Header { return b.header }
func (b *body) WriteHeader(int)     {}

func due(second int) []counters.Tier {
	tiers := []counters.Tier{counters.Traffic}
	if second%15 == 0 {
		tiers = append(tiers, counters.Errors)
	}
	if second == 0 {
		tiers = append(tiers, counters.Slow)
	}
	return tiers
}

func simulate(tb testing.TB) *simulation.Simulation {
	tb.Helper()
	scenario, err := simulation.Load("testdata/dense.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	s, err := simulation.Start(scenario, tb.TempDir(), time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// start starts an agent and waits until all has been read once.
func start(tb testing.TB, s *simulation.Simulation) *Agent {
	tb.Helper()
	a, stop := run(tb, s)
	tb.Cleanup(stop)
	return a
}

// run starts an agent, waits until all has been read once, and returns how to end
// it.
func run(tb testing.TB, s *simulation.Simulation) (a *Agent, stop func()) {
	tb.Helper()
	a, err := New(Config{
		Node: s.Node(), NodeName: s.NodeName(), Kubernetes: s.RESTConfig(), PodResources: s.PodResourcesSocket(),
		Exporter: exporter.Config{Intervals: exporter.DefaultIntervals()},
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	changed, ended := a.Watcher().Changed(), make(chan struct{})
	go func() {
		defer close(ended)
		err = a.Watch(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	select {
	case <-ended:
		cancel()
		tb.Fatal(err)
	case <-changed:
	}
	sample := func() {
		a.Exporter().Sample(ctx, time.Now(), counters.Traffic, counters.Errors, counters.Slow)
	}
	sample()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !isReady(a) {
		<-again.C
	}
	sample() // pods are known now
	return a, stop
}

func isReady(a *Agent) bool {
	response := httptest.NewRecorder()
	a.Handler().ServeHTTP(response, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/readyz", nil))
	return response.Code == http.StatusOK
}

// scrape returns how many lines a scrape has.
func scrape(tb testing.TB, handler http.Handler) int {
	tb.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	if response.Code != http.StatusOK {
		tb.Fatal(response.Body.String())
	}
	return strings.Count(response.Body.String(), "\nrdma_")
}

// heap is the size of all that is reachable.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
