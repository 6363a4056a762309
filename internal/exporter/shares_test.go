package exporter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/kernel/fakekernel"
)

// newPodsRig is a rig of a PF that the process of a pod uses, of which a source
// of pods tells.
func newPodsRig(t *testing.T, source *podSource) *boundRig {
	t.Helper()
	b := newBoundRig(t, attribution.CountersOff, 0)
	b.restart(func(c *Config) {
		c.Attributor = attribution.New(b.node.FS(), attribution.Options{Pods: source, Allocations: b.node, QPSAtMost: attribution.DefaultQPSAtMost})
	})
	b.open(pidA)
	return b
}

// user is the pod of the process, as it is known without and with its owner.
func user(w attribution.Workload) *attribution.Pod {
	return &attribution.Pod{UID: uidA, Namespace: "default", Name: "user", Workload: w}
}

var train = attribution.Workload{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: "train"}

// podSeries are the series of pods, but for what only counts them.
func (b *boundRig) podSeries() []string {
	lines := strings.Split(b.scrape(), "\n")
	return slices.DeleteFunc(lines, func(l string) bool {
		return !strings.HasPrefix(l, "rdma_pod_") || strings.HasPrefix(l, "rdma_pod_attribution")
	})
}

// wantEach wants pods to have series of every tier, all of which have a part.
func (b *boundRig) wantEach(part string) {
	b.t.Helper()
	all := b.podSeries()
	for _, l := range all {
		if !strings.Contains(l, part) {
			b.t.Errorf("%s, want %s in it", l, part)
		}
	}
	for _, family := range []string{"rdma_pod_receive_bytes_total", "rdma_pod_out_of_buffer_total", "rdma_pod_contexts", "rdma_pod_info", "rdma_pod_device_info"} {
		if !slices.ContainsFunc(all, func(l string) bool { return strings.HasPrefix(l, family+"{") }) {
			b.t.Errorf("%s: no series", family)
		}
	}
}

// TestPodsAreKeptBack has the source of pods answer a little later than the
// devices: pods begin under their names in all tiers at once, and have what was
// counted meanwhile.
func TestPodsAreKeptBack(t *testing.T) {
	t.Parallel()
	source := &podSource{isLate: true}
	b := newPodsRig(t, source)
	b.sample(0)
	b.node.counted.Add(5)
	b.sample(5 * time.Second)
	if all, why := b.podSeries(), b.e.notReady(); len(all) > 0 || why != "the pods are not known yet" {
		t.Errorf("not ready: %q, and %q are told; want the pods to be waited for", why, all)
	}
	source.set(user(train))
	source.answer()
	b.sample(time.Second, counters.Traffic)
	b.wantEach(`pod_name="user",`)
	b.want(map[string]string{`rdma_pod_out_of_buffer_total{pod_namespace="default"`: "5"})
	if why := b.e.notReady(); why != "" {
		t.Errorf("not ready: %s", why)
	}
}

// TestPodsAreNotKeptBackForEver has the source of pods not answer.
func TestPodsAreNotKeptBackForEver(t *testing.T) {
	t.Parallel()
	b := newPodsRig(t, &podSource{isLate: true})
	b.sample(0)
	b.sample(podsPatience - time.Second)
	if all := b.podSeries(); len(all) > 0 {
		t.Errorf("told: %q", all)
	}
	b.sample(time.Second)
	b.wantEach(`pod_name="` + uidA)
	if why := b.e.notReady(); why != "" {
		t.Errorf("not ready: %s", why)
	}
}

// TestPodIsKnownBetter finds the owner of a pod later: no series of any tier
// stays without it.
func TestPodIsKnownBetter(t *testing.T) {
	t.Parallel()
	source := &podSource{}
	source.set(user(attribution.Workload{}))
	b := newPodsRig(t, source)
	b.sample(0)
	b.wantEach(`pod_name="user"`)
	source.set(user(train))
	b.sample(5*time.Second, counters.Traffic)
	b.wantEach(`owner_name="train"`)
}

// TestTurnsExclusive has the kubelet say later that a device is the pod's that
// uses it: no series stays that tells it as a user.
func TestTurnsExclusive(t *testing.T) {
	t.Parallel()
	source := &podSource{}
	source.set(user(train))
	b := newPodsRig(t, source)
	b.sample(0)
	b.tick(5)
	b.node.owners[b.node.cards[0][0].pci] = "user"
	b.sample(5*time.Second, counters.Traffic)
	for _, l := range b.podSeries() {
		if strings.Contains(l, `attribution="sole_user"`) {
			t.Errorf("%s is there still", l)
		}
	}
	b.tick(1)
	b.tick(2)
	b.wantEach(`pod_name="user"`)
	b.want(map[string]string{`rdma_exporter_pods{attribution="exclusive"`: "1", `rdma_exporter_pods{attribution="sole_user"`: "0"})
}

// TestUsesOfNewPod has a pod come between two readings of the slow tier: what it
// has is asked once before the next.
func TestUsesOfNewPod(t *testing.T) {
	t.Parallel()
	b := newBoundRig(t, attribution.CountersOff, 0)
	b.sample(0)
	b.open(pidA)
	b.addPairs(pidA)
	for range 3 {
		b.sample(5*time.Second, counters.Traffic)
		b.want(map[string]string{`rdma_pod_contexts{pod_name="` + uidA: "1"})
	}
	if n := b.node.own.Asked(fakekernel.GetMRs); n != 1 {
		t.Errorf("asked what pods have %d times, want once", n)
	}
	b.open(pidB)
	b.sample(5*time.Second, counters.Traffic, counters.Slow)
	b.want(map[string]string{`rdma_pod_contexts{pod_name="` + uidB: "1"})
	if n := b.node.own.Asked(fakekernel.GetMRs); n != 2 {
		t.Errorf("asked what pods have %d times, want once more for both tiers", n)
	}
	b.change(func(h *fakekernel.HCA) { h.Contexts = h.Contexts[1:] })
	b.sample(5*time.Second, counters.Traffic)
	if strings.Contains(b.scrape(), `pod_name="`+uidA) {
		t.Error("series of a pod are there that has left")
	}
}

// TestUsesOfNewPodFail leaves an error to the slow tier.
func TestUsesOfNewPodFail(t *testing.T) {
	t.Parallel()
	b := newBoundRig(t, attribution.CountersOff, 0)
	b.sample(0)
	b.node.own.Refuse(fakekernel.GetMRs, 22)
	b.open(pidA)
	b.sample(5*time.Second, counters.Traffic)
	b.want(map[string]string{`rdma_pod_contexts{`: "1", `rdma_exporter_read_errors_total{`: ""})
	b.sample(5*time.Second, counters.Traffic, counters.Slow)
	b.want(map[string]string{`rdma_exporter_read_errors_total{device="mlx5_0",source="attribution",errno="EINVAL"`: "1"})
}
