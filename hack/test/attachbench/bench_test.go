package attachbench

import (
	"os"
	"testing"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/versus"
)

// BenchmarkAttach gives one pod its rails and takes them away, against the
// netlink calls alone. add-ms, floor-add-ms, del-ms and floor-del-ms are by the
// clock; x-floor is of the CPU time of both together.
func BenchmarkAttach(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("SKIPPED: makes network namespaces: run it as root, or in unshare -rn")
	}
	node := open(b, kerneltest.NewNetNS(b))
	w := newWorld(b, node, 1)
	for _, c := range classes() {
		b.Run(c.name, func(b *testing.B) {
			var o *ours
			if err := node.Do(func() error { o = newOurs(b, b.TempDir(), c); return nil }); err != nil {
				b.Fatal(err)
			}
			us, them := &timed{way: o, pods: w.pods}, &timed{way: bare{world: w, class: c}, pods: w.pods}
			versus.Floor(b, us.run(b), them.run(b))
			us.report(b, "")
			them.report(b, "floor-")
		})
	}
}

// timed is a way whose runs are kept.
type timed struct {
	way     way
	pods    []*pod
	samples []sample
}

func (t *timed) run(b *testing.B) func() error {
	b.Helper()
	return func() error {
		s, err := run(b.Context(), t.way, t.pods)
		t.samples = append(t.samples, s)
		return err
	}
}

func (t *timed) report(b *testing.B, prefix string) {
	b.Helper()
	b.ReportMetric(median(t.samples, adding).wall.Seconds()*1e3, prefix+"add-ms")
	b.ReportMetric(median(t.samples, deleting).wall.Seconds()*1e3, prefix+"del-ms")
}
