package agent

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/counters"
	"railhead/internal/simulation"
)

// TestRealNode has RDMA simulated on a node whose netdevs, processes, kubelet and
// API server are there without it: those of another simulation. The agent takes
// all but RDMA from them.
func TestRealNode(t *testing.T) {
	t.Parallel()
	r := &rig{t: t}
	r.unix.Store(1_700_000_000)
	below := begin(t, "testdata/node.yaml", func(s *simulation.Scenario) (*simulation.Simulation, error) {
		return simulation.Start(s, t.TempDir(), r.now)
	})
	t.Cleanup(func() {
		if err := below.Close(); err != nil {
			t.Error(err)
		}
	})
	r.sim = begin(t, "testdata/rdma-on-node.yaml", func(s *simulation.Scenario) (*simulation.Simulation, error) {
		return simulation.StartOn(below.Node(), s, t.TempDir(), r.now)
	})
	r.watch(Config{
		Node: r.sim.Node(), NodeName: below.NodeName(), Kubernetes: below.RESTConfig(), PodResources: below.PodResourcesSocket(),
	})
	together := func(d time.Duration) {
		for range int(d / (5 * time.Second)) {
			if err := below.Advance(r.now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			r.pass(5 * time.Second)
		}
	}
	r.await(`rdma_pod_info\{.*pod_name="llama-.*",owner_kind="Job",.*owner_name="llama".*\}`)
	r.await(`rdma_pod_info\{.*pod_name="chat-.*",owner_kind="Deployment",.*owner_name="chat".*\}`)
	together(30 * time.Second)
	const llama = `rdma_pod_receive_bytes_total\{pod_namespace="research",pod_name="llama-0-x7k2p",.*device="mlx5_0".*\}`
	const chat = `rdma_pod_receive_bytes_total\{pod_namespace="serving",pod_name="chat-6c9f7d5b8-tq4mz",.*device="mlx5_1".*\}`
	first := r.values(llama)
	if len(first) != 1 || first[0] <= 0 || first[0] > 300e9 {
		t.Errorf("bytes of the training pod %v, want up to those of 30 s", first)
	}
	if got := r.values(chat); len(got) != 1 || got[0] <= 0 || got[0] > 30e9 {
		t.Errorf("bytes of the inference pod %v, want up to those of 30 s", got)
	}
	if got := r.values(`rdma_pod_.*\{.*pod_name="web".*\}`); len(got) > 0 {
		t.Errorf("a pod that matches nothing has %d series", len(got))
	}

	together(35 * time.Second) // the netdev of rail 0 goes down
	if up := r.values(`rdma_port_state\{device="mlx5_0".*state="DOWN".*\}`); !slices.Equal(up, []float64{1}) {
		t.Errorf("the port whose netdev is down: %v, want DOWN", up)
	}
	still := r.values(llama)
	together(10 * time.Second)
	if diff := cmp.Diff(still, r.values(llama)); diff != "" || still[0] <= first[0] {
		t.Errorf("bytes over a port that is down (-before +after):\n%s", diff)
	}

	together(time.Minute) // the training pod ends
	if got := r.values(`rdma_pod_.*\{.*pod_name="llama-.*\}`); len(got) > 0 {
		t.Errorf("a pod that is gone has %d series", len(got))
	}
	if got := r.values(`rdma_port_receive_bytes_total\{device="mlx5_0".*\}`); len(got) != 1 || got[0] < still[0] {
		t.Errorf("its device has counted %v bytes, want at least the pod's %v", got, fmt.Sprint(still))
	}
}

// await samples until there is a series that matches: what Kubernetes says comes in
// the background.
func (r *rig) await(pattern string) {
	r.t.Helper()
	for len(r.values(pattern)) == 0 {
		r.Exporter().Sample(r.t.Context(), r.now(), counters.Traffic, counters.Errors, counters.Slow)
		runtime.Gosched()
	}
}

// begin starts the simulation of a scenario.
func begin(t *testing.T, file string, start func(*simulation.Scenario) (*simulation.Simulation, error)) *simulation.Simulation {
	t.Helper()
	scenario, err := simulation.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := start(scenario)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
