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

// Step is one of several things that both sides do one after the other, each of
// which is measured by itself.
type Step struct {
	Name         string
	Ours, Theirs func() error
}

// Floor measures ours against the least that anybody could do for the same: the
// system calls, the questions, the copying. It reports ours-ns and floor-ns, the
// CPU time of one run of each; ours-B, what one run of ours allocates; x-floor, how
// many times the floor ours takes; beside-floor-ns, what ours takes on top of it; and
// by the clock ours-wall-ns, floor-wall-ns and x-wall.
func Floor(b *testing.B, ours, floor func() error) {
	b.Helper()
	compare(b, "floor", Step{Ours: ours, Theirs: floor})
}

// Peer measures ours against another way to get the same, and reports peer-ns,
// x-peer and peer-wall-ns where Floor reports floor-ns, x-floor and floor-wall-ns. The
// CPU time of a peer in another process, which goes on, is not seen: look at x-wall.
func Peer(b *testing.B, ours, peer func() error) {
	b.Helper()
	compare(b, "peer", Step{Ours: ours, Theirs: peer})
}

// FloorSteps is Floor of each step. What it reports begins with the step's name:
// add-ours-ns, add-x-floor. A step takes milliseconds at least.
func FloorSteps(b *testing.B, steps ...Step) {
	b.Helper()
	compare(b, "floor", steps...)
}

// PeerSteps is Peer of each step, as FloorSteps is Floor.
func PeerSteps(b *testing.B, steps ...Step) {
	b.Helper()
	compare(b, "peer", steps...)
}

func compare(b *testing.B, other string, steps ...Step) {
	b.Helper()
	us, them := make([]*side, len(steps)), make([]*side, len(steps))
	for i, s := range steps {
		us[i], them[i] = &side{do: s.Ours, times: 1}, &side{do: s.Theirs, times: 1}
	}
	warmUp(b, us)
	warmUp(b, them)
	for b.Loop() {
		runAll(b, us)
		runAll(b, them)
	}
	b.ReportMetric(0, "ns/op") // of both together, which says nothing
	for i, s := range steps {
		report(b, s.Name, other, us[i], them[i])
	}
}

func report(b *testing.B, step, other string, us, them *side) {
	b.Helper()
	if step != "" {
		step += "-"
	}
	b.ReportMetric(us.perRun(us.cpu), step+"ours-ns")
	b.ReportMetric(float64(us.bytes)/float64(us.runs), step+"ours-B")
	b.ReportMetric(them.perRun(them.cpu), step+other+"-ns")
	b.ReportMetric(us.perRun(us.cpu)/them.perRun(them.cpu), step+"x-"+other)
	if other == "floor" {
		b.ReportMetric(us.perRun(us.cpu)-them.perRun(them.cpu), step+"beside-floor-ns")
	}
	b.ReportMetric(us.perRun(us.wall), step+"ours-wall-ns")
	b.ReportMetric(them.perRun(them.wall), step+other+"-wall-ns")
	b.ReportMetric(us.perRun(us.wall)/them.perRun(them.wall), step+"x-wall")
}

// side is one of the two, of one step.
type side struct {
	do    func() error
	times int // a turn

	cpu, wall time.Duration
	bytes     uint64
	runs      int
}

// warmUp runs a side once and, where it is one step, finds out how often that is
// done in a turn. Several steps undo one another, so that each is done once.
func warmUp(b *testing.B, steps []*side) {
	b.Helper()
	for again := true; again; {
		runAll(b, steps)
		if again = len(steps) == 1 && steps[0].cpu < turn; again {
			steps[0].times *= 2
		}
		for _, s := range steps {
			*s = side{do: s.do, times: s.times}
		}
	}
}

func runAll(b *testing.B, steps []*side) {
	b.Helper()
	for _, s := range steps {
		s.run(b)
	}
}

func (s *side) run(b *testing.B) {
	b.Helper()
	bytes, cpu, began := allocated(), cpuTime(b), time.Now()
	for range s.times {
		if err := s.do(); err != nil {
			b.Fatal(err)
		}
	}
	s.wall += time.Since(began)
	s.cpu += cpuTime(b) - cpu
	s.bytes += allocated() - bytes
	s.runs += s.times
}

// perRun is the time of one run in nanoseconds.
func (s *side) perRun(total time.Duration) float64 {
	return float64(total.Nanoseconds()) / float64(s.runs)
}

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
