package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/versus"
)

// BenchmarkGateways asks for the gateways of eight rails at once, against one
// after the other, when the kernel knows none. together-ms, sequential-ms and
// x-sequential are of the asking alone, by the clock. It needs root, or a user
// namespace: unshare -rn.
func BenchmarkGateways(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("makes network namespaces: run it as root, or in unshare -rn")
	}
	l := newLab(b, false)
	var targets []Target
	var forget []rtnl.Request
	l.in(kerneltest.NewNetNS(b), func() {
		for n := range 8 {
			gateway := fmt.Sprintf("10.%d.0.1", n)
			t := withGateway(l.rail(n, fmt.Sprintf("10.%d.0.2/24", n)), gateway)
			l.host(n, gateway+"/24")
			targets = append(targets, t)
			forget = append(forget, rtnl.NeighbourDelete{Neighbour: rtnl.Neighbour{LinkIndex: t.Index, IP: netip.MustParseAddr(gateway)}})
		}
	})
	pod, err := rtnl.Dial(&rtnl.Config{NetNS: int(l.pod.Fd())})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = pod.Close() }()
	ask := func(w *watch, groups ...[]Target) func() error {
		return func() error {
			pod.Do(forget...) // there may be none yet
			var errs []error
			start := time.Now()
			for _, g := range groups {
				r, err := l.prober.Run(b.Context(), int(l.pod.Fd()), g)
				errs = append(errs, err, r.Err())
			}
			w.total += time.Since(start)
			w.runs++
			return errors.Join(errs...)
		}
	}
	var each [][]Target
	for i := range targets {
		each = append(each, targets[i:i+1])
	}
	var together, sequential watch
	versus.Peer(b, ask(&together, targets), ask(&sequential, each...))
	b.ReportMetric(together.mean(), "together-ms")
	b.ReportMetric(sequential.mean(), "sequential-ms")
	b.ReportMetric(together.mean()/sequential.mean(), "x-sequential")
}

// watch is a stopwatch.
type watch struct {
	total time.Duration
	runs  int
}

// mean returns milliseconds.
func (w *watch) mean() float64 {
	return float64(w.total.Nanoseconds()) / float64(w.runs) / float64(time.Millisecond)
}
