package attachbench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"railhead/internal/versus"
)

// way is one to attach a pod and to detach it.
type way interface {
	add(ctx context.Context, p *pod) error
	del(ctx context.Context, p *pod) error
}

// BenchmarkRails gives pods that have an eth0 their rails and takes them away: one
// pod beside the bare netlink calls, and 100 at once, or 10 without
// RAILHEAD_NIGHTLY=1.
func BenchmarkRails(b *testing.B) {
	requireNamespaces(b)
	crowd := 10
	if isNightly() {
		crowd = 100
	}
	w := newWorld(b)
	var pods []*pod
	for range crowd {
		pods = append(pods, w.newPodWithEth0(b))
	}
	us, them := newOurs(b), bare{w}
	b.Run("one pod", func(b *testing.B) {
		checkFeatures(b, us, pods[0])
		checkFeatures(b, them, pods[0])
		versus.FloorSteps(b, steps(b, us, them, pods[0])...)
	})
	b.Run("100 pods at once", func(b *testing.B) {
		var took time.Duration
		for b.Loop() {
			began := time.Now()
			atOnce(b, us.add, pods)
			took += time.Since(began)
			atOnce(b, us.del, pods)
		}
		b.ReportMetric(float64(b.N*len(pods))/took.Seconds(), "pods/s")
	})
}

// BenchmarkPod gives a pod its eth0 and its rails, and takes all away, as a container
// runtime has it: by railhead-cni, beside the plugins alone, and beside Multus.
// early-requests are those to the API server that an answer waited for, requests/pod
// all of them.
func BenchmarkPod(b *testing.B) {
	set := requirePlugins(b)
	program := buildPlugin(b)
	p := newWorld(b).newPod(b)
	for _, peer := range []struct {
		name string
		make func(*testing.B) way
	}{
		{"plugins", func(b *testing.B) way { b.Helper(); return newPlugins(b, set.CNIDir()) }},
		{"multus", func(b *testing.B) way { b.Helper(); return newMultus(b, set, p) }},
	} {
		b.Run(peer.name, func(b *testing.B) {
			us, them := newAgent(b, set.CNIDir(), program), peer.make(b)
			checkFeatures(b, us, p)
			checkFeatures(b, them, p)
			before := us.cluster.requests()
			pods := 0
			add := steps(b, us, them, p)
			ours := add[0].Ours
			add[0].Ours = func() error { pods++; return ours() }
			versus.PeerSteps(b, add...)
			us.stop() // once all has been told
			after := us.cluster.requests()
			b.ReportMetric(float64(after.early-before.early), "early-requests")
			b.ReportMetric(float64(after.all-before.all)/float64(pods), "requests/pod")
		})
	}
}

// steps are ADD and DEL of a pod, by both ways.
func steps(b *testing.B, us, them way, p *pod) []versus.Step {
	b.Helper()
	of := func(do func(context.Context, *pod) error) func() error {
		return func() error { return do(b.Context(), p) }
	}
	return []versus.Step{
		{Name: "add", Ours: of(us.add), Theirs: of(them.add)},
		{Name: "del", Ours: of(us.del), Theirs: of(them.del)},
	}
}

// atOnce does something with all pods at once.
func atOnce(b *testing.B, do func(context.Context, *pod) error, pods []*pod) {
	b.Helper()
	errs := make([]error, len(pods))
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() { errs[i] = do(b.Context(), p) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(fmt.Errorf("%d pods at once: %w", len(pods), err))
	}
}
