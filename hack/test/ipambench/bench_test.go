package ipambench

import (
	"cmp"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"railhead/hack/test/api"
)

func TestMain(m *testing.M) {
	api.Launch()
	ctrl.SetLogger(logr.Discard()) // the controller has a logger of its own
	os.Exit(m.Run())
}

// scale is how much is measured.
type scale struct {
	nodes  int
	each   int // pods a node
	rounds int // of sizes of pools
	nodes2 int // that pods of sizes and of reserves are on
	peer   replay
}

func newScale() scale {
	if os.Getenv("RAILHEAD_NIGHTLY") == "" {
		return scale{nodes: 4, each: 4, rounds: 1, nodes2: 2, peer: replay{writers: 4, begins: time.Second}}
	}
	// As many pods as 100 nodes start at once, 1,600, would take the peer that many minutes.
	return scale{nodes: 100, each: 20, rounds: 6, nodes2: 10, peer: replay{writers: 10 * podsAtOnce, begins: 3 * time.Second}}
}

// BenchmarkAddresses has the pods of 100 nodes get addresses, on a real API server;
// of 4 without RAILHEAD_NIGHTLY=1.
func BenchmarkAddresses(b *testing.B) {
	size := newScale()
	s := api.RequireSynced(b)
	peer, err := size.peer.run(b.Context(), s.Config, api.Scheme())
	if err != nil {
		b.Fatal(err)
	}
	f := newFleet(b, s, size.nodes)
	b.Run("rate", func(b *testing.B) { f.benchmarkRate(b, size, peer) })
	b.Run("reserve", func(b *testing.B) { f.benchmarkReserve(b, size) })
	b.Run("sizes", func(b *testing.B) { f.benchmarkSizes(b, size) })
}

// benchmarkRate has pods with 8 addresses each start on all nodes at once. It reports
// addresses a second until they are assigned, which is when a pod goes on, and until
// they are published, which the other way a pod waits for; and what that takes of the
// API server.
func (f *fleet) benchmarkRate(b *testing.B, size scale, peer replayed) {
	b.Helper()
	var got started
	for b.Loop() {
		got = f.rate(b, size.each)
	}
	b.ReportMetric(got.perSecond(), "addresses/s")
	b.ReportMetric(got.publishedPerSecond(), "published/s")
	b.ReportMetric(got.perWrite(b), "addresses/write")
	b.ReportMetric(got.perPod(b), "requests/pod")
	b.ReportMetric(float64(got.refused), "refused-pods")
	b.ReportMetric(float64(at(got.each, 0.5).Nanoseconds()), "p50-wait-ns")
	b.ReportMetric(float64(at(got.each, 0.99).Nanoseconds()), "p99-wait-ns")
	b.ReportMetric(peer.perSecond(), "peer-published/s")
	b.ReportMetric(peer.perWrite(), "peer-addresses/write")
	b.ReportMetric(peer.perPod(), "peer-requests/pod")
}

// benchmarkReserve has pods come alone: where their addresses have to be granted, and
// where their node has a reserve of them, which needs no API server.
func (f *fleet) benchmarkReserve(b *testing.B, size scale) {
	b.Helper()
	var got waits
	for b.Loop() {
		got = f.wait(b, size.nodes2, 3)
	}
	b.ReportMetric(float64(at(got.granted, 0.5).Nanoseconds()), "p50-granted-ns")
	b.ReportMetric(float64(at(got.reserved, 0.5).Nanoseconds()), "p50-reserved-ns")
	b.ReportMetric(float64(got.needy), "needy-pods")
}

// benchmarkSizes has pods get an address each out of pools of several sizes, and
// reports how many times the cheapest size the dearest is. CPU time and bytes tell a
// pool's size from whatever else the machine does.
func (f *fleet) benchmarkSizes(b *testing.B, size scale) {
	b.Helper()
	var got []sized
	for b.Loop() {
		got = f.flat(b, sizes(size.rounds), size.nodes2, 20)
	}
	for unit, of := range map[string]func(sized) float64{
		"x-cpu":              func(s sized) float64 { return s.cpu },
		"x-agent-bytes":      func(s sized) float64 { return s.agentBytes },
		"x-controller-bytes": func(s sized) float64 { return s.controllerBytes },
	} {
		by := func(a, b sized) int { return cmp.Compare(of(a), of(b)) }
		b.ReportMetric(of(slices.MaxFunc(got, by))/of(slices.MinFunc(got, by)), unit)
	}
}

// at is the time within which a share of something in order took place.
func at(each []time.Duration, share float64) time.Duration {
	return each[min(len(each)-1, int(share*float64(len(each))))]
}
