package exporter

import (
	"strings"
	"sync"
	"testing"
	"time"

	"railhead/internal/attribution"
	"railhead/internal/counters"
	"railhead/internal/kernel/fakekernel"
)

// podSource knows pods until it forgets them.
type podSource struct {
	mu     sync.Mutex
	pods   []*attribution.Pod
	isLate bool // it does not know all yet
}

func (s *podSource) find(isIt func(*attribution.Pod) bool) *attribution.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		if isIt(p) {
			return p
		}
	}
	return nil
}

func (s *podSource) set(pods ...*attribution.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = pods
}

func (s *podSource) Pod(uid string) *attribution.Pod {
	return s.find(func(p *attribution.Pod) bool { return p.UID == uid })
}

func (s *podSource) PodByName(namespace, name string) *attribution.Pod {
	return s.find(func(p *attribution.Pod) bool { return p.Namespace == namespace && p.Name == name })
}

func (s *podSource) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isLate
}

// answer has it know all pods.
func (s *podSource) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isLate = false
}

// TestForgottenPods has pods be forgotten before they end, of which one was
// given its device and one uses it: their series go on as they were, once each.
func TestForgottenPods(t *testing.T) {
	t.Parallel()
	job := attribution.Workload{APIVersion: "batch/v1", Kind: "Job", Namespace: "default", Name: "train"}
	source := &podSource{}
	b := newBoundRig(t, attribution.CountersAuto, 1)
	b.node.give(t, 0, 1, "given")
	b.restart(func(c *Config) {
		c.Attributor = attribution.New(b.node.FS(), attribution.Options{Pods: source, Allocations: b.node, QPSAtMost: attribution.DefaultQPSAtMost})
	})
	b.open(pidA)
	series := func(name, device string) string {
		return `rdma_pod_receive_bytes_total{pod_namespace="default",pod_name="` + name + `",owner_kind="Job",owner_namespace="default",owner_name="train",device="` + device + `"`
	}
	source.set(
		&attribution.Pod{UID: "cccccccc-0000-4000-8000-000000000000", Namespace: "default", Name: "given", Workload: job},
		&attribution.Pod{UID: uidA, Namespace: "default", Name: "user", Workload: job},
	)
	b.tick(0)
	b.tick(5)
	source.set()
	for range 3 {
		b.tick(1)
	}
	b.sample(0, counters.Traffic) // the bytes of a PF are read with the errors
	b.want(map[string]string{
		series("given", "mlx5_1"): "8", series("user", "mlx5_0"): "8",
		`rdma_pod_device_info{pod_namespace="default",pod_name="user",owner_kind="Job"`: "1",
		`rdma_pod_contexts{pod_namespace="default",pod_name="user",owner_kind="Job"`:    "1",
		`rdma_pod_info{pod_namespace="default",pod_name="user",pod_uid="` + uidA:        "1",
	})
	text := b.scrape()
	if n := strings.Count(text, "rdma_pod_receive_bytes_total{"); n != 2 || strings.Contains(text, `pod_name="`+uidA) {
		t.Errorf("%d series of pods, want 2, and none by the UID:\n%s", n, text)
	}
	if n := strings.Count(text, "rdma_pod_info{"); n != 2 {
		t.Errorf("%d pods are told of, want 2", n)
	}
	b.change(func(h *fakekernel.HCA) { h.Contexts = nil })
	b.sample(5 * time.Second)
	b.want(map[string]string{series("given", "mlx5_1"): "8", series("user", "mlx5_0"): ""})
}

// TestKnownPods tells apart who may be the same pod.
func TestKnownPods(t *testing.T) {
	t.Parallel()
	full := &attribution.Pod{UID: "1", Namespace: "ai", Name: "a"}
	for name, test := range map[string]struct{ before, now, want *attribution.Pod }{
		"by UID":            {full, &attribution.Pod{UID: "1", Name: "1"}, full},
		"by name":           {full, &attribution.Pod{Namespace: "ai", Name: "a"}, full},
		"another UID":       {full, &attribution.Pod{UID: "2", Name: "2"}, &attribution.Pod{UID: "2", Name: "2"}},
		"another name":      {full, &attribution.Pod{Namespace: "ai", Name: "b"}, &attribution.Pod{Namespace: "ai", Name: "b"}},
		"another namespace": {full, &attribution.Pod{Namespace: "ml", Name: "a"}, &attribution.Pod{Namespace: "ml", Name: "a"}},
		"of the same name":  {full, &attribution.Pod{UID: "2", Namespace: "ai", Name: "a"}, &attribution.Pod{UID: "2", Namespace: "ai", Name: "a"}},
		"known better now":  {&attribution.Pod{UID: "1", Name: "1"}, full, full},
		"nobody":            {full, nil, nil},
	} {
		d := &device{}
		d.setHolders([]holder{{pod: test.before}})
		switch got := d.known(test.now); {
		case (got == nil) != (test.want == nil), got != nil && *got != *test.want:
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
