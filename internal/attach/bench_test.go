package attach

import (
	"errors"
	"os"
	"testing"
	"time"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/versus"
)

// bare is what nobody can do without to attach the rails of a Plan: a socket
// in each of the namespaces, and there the requests in as few pieces as they fit.
type bare struct {
	w            *world
	plan         *Plan
	links        []rtnl.Request
	rest, remove []rtnl.Request
	node, pod    *rtnl.Client
}

func newBare(w *world, plan *Plan) *bare {
	b := &bare{w: w, plan: plan, node: w.node, pod: w.pod, remove: []rtnl.Request{rtnl.LinkDeleteGroup{Group: Group}}}
	ns, err := netns.Open(w.path)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(func() { _ = ns.Close() })
	work := &work{a: w.a, plan: plan, ns: ns, index: map[string]int{}}
	for n := range plan.Interfaces {
		i := &plan.Interfaces[n]
		if work.index[i.Name] = i.Index; i.made() {
			b.links = append(b.links, work.linkAdd(i))
		}
	}
	for _, act := range work.podRouting() {
		b.rest = append(b.rest, act.do)
		if remove, ok := act.undo.(rtnl.RuleDelete); ok {
			b.remove = append(b.remove, remove)
		}
	}
	return b
}

func (b *bare) attach() error {
	return errors.Join(errors.Join(b.node.Do(b.links...)...), errors.Join(b.pod.Do(b.rest...)...))
}

func (b *bare) detach() error { return errors.Join(b.pod.Do(b.remove...)...) }

// stopwatch times one half of what is done again and again.
type stopwatch struct {
	total time.Duration
	runs  int
}

func (s *stopwatch) time(do func() error) error {
	start := time.Now()
	err := do()
	s.total += time.Since(start)
	s.runs++
	return err
}

// mean is in milliseconds.
func (s *stopwatch) mean() float64 {
	return float64(s.total.Nanoseconds()) / float64(s.runs) / float64(time.Millisecond)
}

// benchRails are eight macvlans, each with an address, three routes and a rule,
// and nothing else.
func benchRails(w *world) *Plan {
	pod := w.podOf()
	o := coordinated(func(o *routing.Options) { o.PodCIDRs, o.ServiceCIDRs, o.HijackCIDRs = nil, nil, nil })
	for n := range 8 {
		pod.Interfaces = append(pod.Interfaces, rail(n, o, "4"))
	}
	return w.plan(pod)
}

// BenchmarkApply plans and attaches eight rails, against the bare requests for
// the same, and takes them away again, on both sides in the same way. Figures with
// add- are of the giving alone, by the clock. It needs root, or a user
// namespace: unshare -rn.
func BenchmarkApply(b *testing.B) {
	w := benchWorld(b)
	plan := benchRails(w)
	floor := newBare(w, plan)
	var ours, theirs stopwatch
	versus.Floor(b, func() error {
		err := ours.time(func() error { _, err := w.a.Apply(b.Context(), plan); return err })
		return errors.Join(err, floor.detach())
	}, func() error {
		return errors.Join(theirs.time(floor.attach), floor.detach())
	})
	b.ReportMetric(ours.mean(), "add-ms")
	b.ReportMetric(theirs.mean(), "floor-add-ms")
	b.ReportMetric(ours.mean()/theirs.mean(), "x-floor-add")
}

// BenchmarkPlanApply is BenchmarkApply with the planning.
func BenchmarkPlanApply(b *testing.B) {
	w := benchWorld(b)
	floor := newBare(w, benchRails(w))
	var ours, theirs stopwatch
	versus.Floor(b, func() error {
		err := ours.time(func() error { _, err := w.a.Apply(b.Context(), benchRails(w)); return err })
		return errors.Join(err, floor.detach())
	}, func() error {
		return errors.Join(theirs.time(floor.attach), floor.detach())
	})
	b.ReportMetric(ours.mean(), "add-ms")
	b.ReportMetric(theirs.mean(), "floor-add-ms")
	b.ReportMetric(ours.mean()/theirs.mean(), "x-floor-add")
}

// BenchmarkUndo takes eight rails away, against the bare requests for it. Figures with
// del- are of the taking alone, by the clock.
func BenchmarkUndo(b *testing.B) {
	w := benchWorld(b)
	plan := benchRails(w)
	floor := newBare(w, plan)
	var ours, theirs stopwatch
	versus.Floor(b, func() error {
		err := floor.attach()
		return errors.Join(err, ours.time(func() error { return w.a.Undo(b.Context(), plan, nil) }))
	}, func() error {
		return errors.Join(floor.attach(), theirs.time(floor.detach))
	})
	b.ReportMetric(ours.mean(), "del-ms")
	b.ReportMetric(theirs.mean(), "floor-del-ms")
	b.ReportMetric(ours.mean()/theirs.mean(), "x-floor-del")
}

// benchWorld is a world of which a benchmark makes the namespaces.
func benchWorld(b *testing.B) *world {
	b.Helper()
	if os.Geteuid() != 0 {
		b.Skip("makes network namespaces: run it as root, or in unshare -rn")
	}
	return newWorld(b)
}
