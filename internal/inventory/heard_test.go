package inventory

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// TestRDMAEvents counts what the monitor tells, until a VF comes home from a
// pod, which the last event is about.
func TestRDMAEvents(t *testing.T) {
	t.Parallel()
	n := newNodeWithPod(t)
	n.host.kernel.Change(func(f *fakekernel.Facts) { f.System.MonitorSupport = new(true) })
	w := watchedNode(t, n)
	if counts, ok := w.RDMAEvents(); len(counts) != 0 || !ok {
		t.Errorf("%v, %v before any event, want none and a monitor", counts, ok)
	}
	vf := n.host.functions[1]
	for _, e := range []rdmanl.Event{
		{Kind: "NETDEV_DETACH", DeviceName: "mlx5_0", Port: 1},
		{Kind: "NETDEV_ATTACH", DeviceName: "mlx5_0", Port: 1, NetdevIndex: 7, NetdevName: "eth0"},
		{Kind: "NETDEV_DETACH", DeviceName: "mlx5_0", Port: 1},
		{Kind: "NETDEV_RENAME", NetdevIndex: 7, NetdevName: "rail0"}, // of no device that it names
		{Kind: "17", DeviceName: "mlx5_0"},
	} {
		n.host.kernel.SendRDMA(e)
	}
	n.pod.move(n.pod.functions[1])
	n.host.move(vf)
	n.host.kernel.SendRDMA(rdmanl.Event{Kind: "REGISTER", DeviceIndex: vf.device, DeviceName: vf.rdma})
	awaitHome(t, w, vf)
	want := []RDMAEventCount{
		{RDMAEvent{"mlx5_0", "17"}, 1},
		{RDMAEvent{"mlx5_0", "NETDEV_ATTACH"}, 1},
		{RDMAEvent{"mlx5_0", "NETDEV_DETACH"}, 2},
		{RDMAEvent{vf.rdma, "REGISTER"}, 1},
	}
	if counts, ok := w.RDMAEvents(); !ok || cmp.Diff(want, counts) != "" {
		t.Errorf("events (-want +got):\n%s", cmp.Diff(want, counts))
	}
}

// TestNoRDMAEvents has a kernel without a monitor, which is not the same as one
// that told of nothing.
func TestNoRDMAEvents(t *testing.T) {
	t.Parallel()
	w := watchedNode(t, newNodeWithPod(t))
	if counts, ok := w.RDMAEvents(); counts != nil || ok {
		t.Errorf("%v, %v, want none and no monitor", counts, ok)
	}
}

// watchedNode runs a Watcher of a node until the test ends. It has a snapshot.
func watchedNode(t *testing.T, n *nodeWithPod) *Watcher {
	t.Helper()
	r, err := NewReader(n)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(r, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	first := w.Changed()
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, r.Close()); !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v, want %v", err, context.Canceled)
		}
	})
	<-first
	return w
}

// awaitHome waits until the RDMA device of a function is in our namespace.
func awaitHome(t *testing.T, w *Watcher, f *simFunction) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		changed := w.Changed()
		if d, ok := w.Snapshot().Device(f.id); ok && d.RDMA != nil && d.RDMA.NetNS == nil {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s did not come home", f.rdma)
		}
	}
}
