package exporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"railhead/internal/counters"
	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/versus"
)

// The node of the budget: 8 cards with 16 VFs each, 100 of which are in pods.
const (
	benchCards = 8
	benchVFs   = 16
	benchPods  = 100
)

// commandsOfCard is how many firmware commands a card makes of a full sample.
const commandsOfCard = statisticsOfPF + ethtoolOfPF + benchVFs*(statisticsOfVF+ethtoolOfVF)

func newBenchNode(b *testing.B) *testNode {
	b.Helper()
	n := newTestNode(b, benchCards, benchVFs)
	for i := range benchPods {
		n.give(b, i%benchCards, 1+i/benchCards, fmt.Sprintf("pod-%d", i))
	}
	n.counted.Store(1 << 40)
	return n
}

func newBenchExporter(b *testing.B, n *testNode) *Exporter {
	b.Helper()
	e, err := New(Config{Node: n, Attributor: n.attributor(), Intervals: DefaultIntervals()})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkSample samples the node once, beside the bare questions: what of it is
// the fake kernel, which stands for the driver, and the clients.
func BenchmarkSample(b *testing.B) {
	n := newBenchNode(b)
	s := n.snapshot(b)
	e := newBenchExporter(b, n)
	now := time.Now()
	all := []counters.Tier{counters.Traffic, counters.Errors, counters.Slow}
	compare := func(name string, tiers []counters.Tier) {
		b.Run(name, func(b *testing.B) {
			sample := func() error {
				now = now.Add(5 * time.Second)
				e.sample(b.Context(), s, now, tiers)
				return nil
			}
			if err := sample(); err != nil {
				b.Fatal(err)
			}
			asks := e.asks(tiers)
			versus.Floor(b, sample, func() error { return n.ask(asks) })
		})
	}
	compare("all tiers", all)
	for _, tier := range all {
		compare(collectorName(tier), []counters.Tier{tier})
	}
}

// asks are the devices of which tiers ask for statistics, by whom they ask.
func (e *Exporter) asks(tiers []counters.Tier) map[string]map[string]bool {
	asks := map[string]map[string]bool{"rdma": {}, "ethtool": {}}
	for _, n := range e.nics {
		for _, d := range n.list() {
			for source, devices := range asks {
				devices[d.found.Load().RDMA.Name] = slices.ContainsFunc(tiers, func(t counters.Tier) bool { return d.reader.Asks(source, t) })
			}
		}
	}
	return asks
}

// BenchmarkFirmware samples the node with a firmware that takes a time for each
// command. A card answers one command after the other, so 113 times that is the
// least that it can take: x-floor is by the clock.
func BenchmarkFirmware(b *testing.B) {
	n := newBenchNode(b)
	s := n.snapshot(b)
	all := []counters.Tier{counters.Traffic, counters.Errors, counters.Slow}
	for _, command := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		b.Run(command.String(), func(b *testing.B) {
			n.command.Store(int64(command))
			e := newBenchExporter(b, n)
			now := time.Now()
			e.sample(b.Context(), s, now, all)
			for b.Loop() {
				now = now.Add(5 * time.Second)
				e.sample(b.Context(), s, now, all)
			}
			ours, floor := float64(b.Elapsed().Nanoseconds())/float64(b.N), float64((commandsOfCard * command).Nanoseconds())
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours, "ours-ns")
			b.ReportMetric(floor, "floor-ns")
			b.ReportMetric(ours/floor, "x-floor")
		})
	}
}

// ask asks functions of the node for their statistics, those in pods where they
// are, and does nothing with the answers.
func (n *testNode) ask(asks map[string]map[string]bool) error {
	stats := make([]uint64, 4) // of a PF; a VF has two
	for _, card := range n.cards {
		for i, fn := range card {
			ns := n.Own()
			if fn.pod != "" {
				var err error
				if ns, err = n.Open(n.path(fn.pod)); err != nil {
					return err
				}
			}
			var errRDMA, errEthtool error
			if asks["rdma"][fn.name] {
				errRDMA = askRDMA(ns, uint32(fn.index))
			}
			if asks["ethtool"][fn.name] {
				errEthtool = askEthtool(ns, fn.netdev, stats[:statsOf(i)])
			}
			if err := errors.Join(errRDMA, errEthtool, ns.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

func askRDMA(ns node.NetNS, device uint32) error {
	c, err := ns.RDMA()
	if err != nil {
		return err
	}
	_, err = c.Statistics(device, 1)
	return errors.Join(err, c.Close())
}

func askEthtool(ns node.NetNS, netdev string, stats []uint64) error {
	c, err := ns.Ethtool()
	if err != nil {
		return err
	}
	return errors.Join(c.Stats(netdev, stats), c.Close())
}

// BenchmarkScrape scrapes the node by HTTP, with the exporter's own metrics,
// beside client_golang's handler with as many series.
func BenchmarkScrape(b *testing.B) {
	n := newBenchNode(b)
	before := heap()
	e := newBenchExporter(b, n)
	e.sample(b.Context(), n.snapshot(b), time.Now(), nil)
	b.Logf("the exporter keeps %d KiB", (heap()-before)>>10)
	var all bytes.Buffer
	if err := scraper(b, e.Handler(), "", &all)(); err != nil {
		b.Fatal(err)
	}
	series := bytes.Count(all.Bytes(), []byte("\nrdma_"))
	registry := prometheus.NewRegistry()
	registry.MustRegister(newConstMetrics(series/benchDevices, 3))
	peer := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	for name, encoding := range map[string]string{"plain": "", "gzip": "gzip"} {
		b.Run(name, func(b *testing.B) {
			versus.Peer(b, scraper(b, e.Handler(), encoding, io.Discard), scraper(b, peer, encoding, io.Discard))
			b.ReportMetric(float64(series), "series")
		})
	}
}

// scraper scrapes a handler.
func scraper(b *testing.B, h http.Handler, encoding string, to io.Writer) func() error {
	b.Helper()
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", http.NoBody)
	req.Header.Set("Accept-Encoding", encoding)
	return func() error {
		w := &response{Writer: to, header: http.Header{}}
		if h.ServeHTTP(w, req); w.status != http.StatusOK {
			return fmt.Errorf("status %d", w.status)
		}
		return nil
	}
}

// heap is how much memory is in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// response is a response that costs nothing but what is written to it.
type response struct {
	io.Writer

	header http.Header
	status int
}

func (r *response) Header() http.Header    { return r.header }
func (r *response) WriteHeader(status int) { r.status = status }
func (r *response) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.Writer.Write(b)
}

// BenchmarkExec samples the node and scrapes it, beside what exporters do that
// start the tools of iproute2 at each scrape: one rdma and two ip in each network
// namespace with a device. The namespace is real and empty, and the kernel needs
// no RDMA for rdma to start and end.
func BenchmarkExec(b *testing.B) {
	for _, tool := range []string{"rdma", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.Skipf("%v: install iproute2 to compare with exporters that start it", err)
		}
	}
	file := kerneltest.NewNetNS(b)
	ns, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		b.Fatal(err)
	}
	defer ns.Close()
	n := newBenchNode(b)
	e, s, now := newBenchExporter(b, n), n.snapshot(b), time.Now()
	scrape := scraper(b, e.Handler(), "", io.Discard)
	ours := func() error {
		now = now.Add(time.Minute)
		e.sample(b.Context(), s, now, []counters.Tier{counters.Traffic, counters.Errors, counters.Slow})
		return scrape()
	}
	versus.Peer(b, ours, func() error {
		for range benchPods {
			if err := startTools(b.Context(), ns); err != nil {
				return err
			}
		}
		return nil
	})
}

// startTools starts the tools in a namespace. That they find nothing in an empty
// one is no failure.
func startTools(ctx context.Context, ns *netns.NS) error {
	for _, args := range [][]string{
		{"rdma", "statistic", "-j"},
		{"ip", "route", "get", "1.0.0.0"},
		{"ip", "-6", "route", "get", "2001:db8::1"},
	} {
		err := ns.Do(func() error { return exec.CommandContext(ctx, args[0], args[1:]...).Run() })
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			return err
		}
	}
	return nil
}
