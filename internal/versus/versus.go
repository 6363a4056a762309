// Package versus is for benchmarks: it measures one thing against another in
// one run, turn by turn, so that whatever else the machine does slows both
// alike. It tells the CPU time of the whole process and of those that it waited
// for, the garbage collector's with it, because that of others does not count in
// there.
//
// It judges nothing: hack/bench knows the budgets.
package versus

import (
	"runtime/metrics"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// turn is for how long each side is run before it is the other's turn, at
// least: long enough that reading clocks does not show.
const turn = 5 * time.Millisecond

// Floor measures ours against the least that anybody could do for the same: the
// system calls, the questions, the copying. It reports ours-ns and floor-ns, the
// CPU time of one run of each; ours-B, what one run of ours allocates; and
// x-floor, how many times the floor ours takes.
func Floor(b *testing.B, ours, floor func() error) {
	b.Helper()
	compare(b, "floor", ours, floor)
}

// Peer measures ours against another way to get the same, and reports peer-ns
// and x-peer where Floor reports floor-ns and x-floor.
func Peer(b *testing.B, ours, peer func() error) {
	b.Helper()
	compare(b, "peer", ours, peer)
}

func compare(b *testing.B, other string, ours, theirs func() error) {
	b.Helper()
	us, them := newSide(b, ours), newSide(b, theirs)
	for b.Loop() {
		us.run(b)
		them.run(b)
	}
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
	b.ReportMetric(us.perRun(), "ours-ns")
	b.ReportMetric(float64(us.bytes)/float64(us.runs), "ours-B")
	b.ReportMetric(them.perRun(), other+"-ns")
	b.ReportMetric(us.perRun()/them.perRun(), "x-"+other)
}

// side is one of the two.
type side struct {
	do    func() error
	times int // a turn

	cpu   time.Duration
	bytes uint64
	runs  int
}

// newSide warms up, and finds out how often something is done in a turn.
func newSide(b *testing.B, do func() error) *side {
	b.Helper()
	s := &side{do: do}
	for s.times = 1; ; s.times *= 2 {
		s.cpu = 0
		if s.run(b); s.cpu >= turn {
			return &side{do: do, times: s.times}
		}
	}
}

func (s *side) run(b *testing.B) {
	b.Helper()
	bytes, cpu := allocated(), cpuTime(b)
	for range s.times {
		if err := s.do(); err != nil {
			b.Fatal(err)
		}
	}
	s.cpu += cpuTime(b) - cpu
	s.bytes += allocated() - bytes
	s.runs += s.times
}

// perRun is the CPU time of one run in nanoseconds.
func (s *side) perRun() float64 { return float64(s.cpu.Nanoseconds()) / float64(s.runs) }

// cpuTime is the CPU time that this process and those it waited for have used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}

// allocated is how many bytes were ever allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
