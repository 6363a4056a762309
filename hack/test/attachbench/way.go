package attachbench

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// class is what of a pod is done. Only the same is held against each other.
type class struct {
	name                        string
	routes, gateways, conflicts bool
}

// classes are those of rails alone, each with what the one before has.
func classes() []class {
	return []class{
		{name: "addresses"},
		{name: "addresses, policy routes", routes: true},
		{name: "addresses, policy routes, gateways asked", routes: true, gateways: true},
	}
}

// podClasses are those of whole pods: the last is what they have by default. To
// know that nobody else has an address takes a wait.
func podClasses() []class {
	return append(classes(), class{
		name: "addresses, policy routes, gateways and conflicts asked", routes: true, gateways: true, conflicts: true,
	})
}

// way is one to attach a pod and to detach it.
type way interface {
	add(ctx context.Context, p *pod) error
	del(ctx context.Context, p *pod) error
}

// cost is what something took.
type cost struct {
	wall time.Duration
	cpu  time.Duration // of this process, of those that it waited for, and of a server of the way
}

// sample is one run of a way with so many pods at once.
type sample struct{ add, del cost }

// run attaches pods at once and then detaches them. After an error, what was
// attached is detached too.
func run(ctx context.Context, w way, pods []*pod) (sample, error) {
	add, err := measure(ctx, w, pods, w.add)
	del, err2 := measure(context.WithoutCancel(ctx), w, pods, w.del)
	return sample{add, del}, errors.Join(err, err2)
}

// measure does something of a way with all pods at once.
func measure(ctx context.Context, w way, pods []*pod, do func(context.Context, *pod) error) (cost, error) {
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	cpu, err := cpuTime(w)
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	for i, p := range pods {
		all.Go(func() { errs[i] = do(ctx, p) })
	}
	all.Wait()
	took := time.Since(start)
	after, err := cpuTime(w)
	return cost{took, after - cpu}, errors.Join(errors.Join(errs...), err)
}

// served is a way that another process has a part in, which goes on.
type served interface{ cpuTime() (time.Duration, error) }

// cpuTime is what this process, those that it waited for and the way's server have
// used.
func cpuTime(w way) (time.Duration, error) {
	var total time.Duration
	if s, ok := w.(served); ok {
		used, err := s.cpuTime()
		if err != nil {
			return 0, err
		}
		total += used
	}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			return 0, err
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total, nil
}

// pair has two ways take turns.
func pair(ctx context.Context, ours, theirs way, pods []*pod, rounds int) (us, them []sample, err error) {
	for i := range rounds + 1 {
		a, err := run(ctx, ours, pods)
		if err != nil {
			return nil, nil, err
		}
		b, err := run(ctx, theirs, pods)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 { // the first warms up
			us, them = append(us, a), append(them, b)
		}
	}
	return us, them, ctx.Err()
}

// alone runs one way again and again.
func alone(ctx context.Context, w way, pods []*pod, rounds int) (samples []sample, err error) {
	for i := range rounds + 1 {
		s, err := run(ctx, w, pods)
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first warms up
			samples = append(samples, s)
		}
	}
	return samples, ctx.Err()
}
