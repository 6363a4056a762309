package simulation

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/inventory"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rtnl"
)

// TestPortEvents checks what is heard and seen of a port that goes down and
// comes back at less.
func TestPortEvents(t *testing.T) {
	t.Parallel()
	r := beginText(t, `
node: gpu-1
cards: [{name: mlx5_0, pci: "0000:18:00.0", traffic: {receive: 1G}}]
events:
- {do: down, devices: [mlx5_0], from: 10s, for: 5s}
- {do: degrade, devices: [mlx5_0], from: 15s, speed: 100, lanes: 1, share: 0.5}
`)
	links, err := r.Node().Subscribe(rtnl.Links)
	if err != nil {
		t.Fatal(err)
	}
	defer links.Close()
	var bytes []uint64
	var states []string
	var speeds []float64
	for range 4 {
		s := r.snapshot()
		states, speeds = append(states, s.Devices[0].RDMA.Ports[0].State), append(speeds, s.Devices[0].RDMA.Ports[0].Gigabits)
		bytes = append(bytes, r.driverStatistics("mlx5_0")["rx_vport_rdma_unicast_bytes"])
		r.pass(5 * time.Second)
	}
	if diff := cmp.Diff([]string{"ACTIVE", "ACTIVE", "DOWN", "ACTIVE"}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if speeds[1] != 400 || speeds[3] != 100 {
		t.Errorf("speeds %v, want 400 and then 100", speeds)
	}
	bytes = append(bytes, r.driverStatistics("mlx5_0")["rx_vport_rdma_unicast_bytes"])
	if diff := cmp.Diff([]uint64{0, 5e9, 10e9, 10e9, 12.5e9}, bytes); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
	if got := r.driverStatistics("mlx5_0")["link_down_events_phy"]; got != 1 {
		t.Errorf("the link was down %d times, want 1", got)
	}
	var running []bool
	for len(running) < 2 {
		events, err := links.Receive()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			running = append(running, e.Link.Running)
		}
	}
	if diff := cmp.Diff([]bool{false, true}, running); diff != "" {
		t.Errorf("events of the link (-want +got):\n%s", diff)
	}
}

// TestMoveEvents checks what the host hears of a VF that goes into a pod.
func TestMoveEvents(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	uevents, err := r.Node().Uevents()
	if err != nil {
		t.Fatal(err)
	}
	defer uevents.Close()
	links, err := r.Node().Subscribe(rtnl.Links)
	if err != nil {
		t.Fatal(err)
	}
	defer links.Close()
	r.pass(10 * time.Second)
	seen := map[string]bool{}
	for !seen["remove net"] || !seen["remove infiniband"] || !seen["add infiniband_verbs"] {
		e, err := uevents.Receive()
		if err != nil {
			t.Fatal(err)
		}
		seen[e.Action+" "+e.Subsystem] = true
		if e.Action == "add" && (e.Subsystem == "net" || e.Subsystem == "infiniband") {
			t.Errorf("the host heard of %s, which is in the pod", e.DevPath)
		}
	}
	received, err := links.Receive()
	if err != nil || len(received) == 0 || !received[0].Deleted || received[0].Link.Name != "enp24s0f0v0" {
		t.Errorf("events %+v, %v, want that the VF's netdev is gone", received, err)
	}
}

// TestRefuse checks that one device that answers with an error does not disturb
// the others, and that it follows the device into a pod and ends.
func TestRefuse(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn+`
events:
- {do: refuse, devices: [mlx5_0/0], request: statistics, errno: EIO, from: 5s, for: 20s}
- {do: refuse, devices: [mlx5_0/0], request: ethtool, errno: ENODEV, from: 5s, for: 20s}
`)
	ask := func() error {
		t.Helper()
		f := r.function("mlx5_0/0")
		client := f.place.kernel.RDMA()
		defer client.Close()
		_, err := client.Statistics(f.index, 1)
		return err
	}
	for _, want := range []error{nil, unix.EIO, unix.EIO, nil} {
		if err := ask(); !errors.Is(err, want) {
			t.Errorf("at %v: %v, want %v", r.now.Sub(r.epoch), err, want)
		}
		if r.statistics("mlx5_0/1") == nil {
			t.Error("the other VF has no counters")
		}
		r.pass(9 * time.Second)
	}
}

// TestBlock checks that a device can be slow, and that this ends.
func TestBlock(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn+"events: [{do: block, devices: [mlx5_0/1], request: statistics, delay: 100h, from: 1s, for: 5s}]")
	r.pass(2 * time.Second)
	kernel := r.machine.host.kernel
	asked := kernel.Asked(fakekernel.GetStatistics)
	answered := make(chan map[string]uint64, 1)
	go func() { answered <- r.statistics("mlx5_0/1") }()
	for kernel.Asked(fakekernel.GetStatistics) == asked {
		runtime.Gosched()
	}
	if r.statistics("mlx5_0") == nil {
		t.Error("the PF has no counters")
	}
	select {
	case <-answered:
		t.Error("it answered at once")
	default:
	}
	r.pass(10 * time.Second)
	if <-answered == nil {
		t.Error("it has no counters")
	}
}

// TestRun checks that a simulation goes with its clock.
func TestRun(t *testing.T) {
	t.Parallel()
	s, err := Load("../../scenarios/vendors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sim, err := Start(s, memoryDir(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{tb: t, Simulation: sim}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	before := r.statistics("rxe0")["rcvd_pkts"]
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sim.Run(ctx) }()
	for r.statistics("rxe0")["rcvd_pkts"] <= before {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v, want that it was cancelled", err)
	}
}

func BenchmarkAdvance(b *testing.B) {
	r := beginFile(b, "../../scenarios/healthy.yaml")
	b.ReportAllocs()
	for b.Loop() {
		r.pass(tick)
	}
}

func BenchmarkStart(b *testing.B) {
	s, err := Load("../../scenarios/healthy.yaml")
	if err != nil {
		b.Fatal(err)
	}
	dir := memoryDir(b)
	for b.Loop() {
		sim, err := Start(s, dir, time.Now)
		if err != nil {
			b.Fatal(err)
		}
		if err := sim.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWatcher checks that an inventory that goes by events alone sees a VF go
// into a pod.
func TestWatcher(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	reader, err := inventory.NewReader(r.Node())
	if err != nil {
		t.Fatal(err)
	}
	watcher := inventory.NewWatcher(reader, inventory.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	changed := watcher.Changed()
	go func() { ended <- watcher.Run(ctx) }()
	<-changed
	r.pass(10 * time.Second)
	for {
		changed := watcher.Changed()
		d, ok := watcher.Snapshot().Device("0000:18:01.0")
		if ok && d.RDMA != nil && d.RDMA.NetNS != nil && len(d.Netdevs) == 1 && d.Netdevs[0].Name == "net1" {
			break
		}
		<-changed
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v, want that it was cancelled", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}
