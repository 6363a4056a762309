package exporter

import (
	"context"
	"errors"
	"testing"
	"time"

	"railhead/internal/counters"
	"railhead/internal/inventory"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/rdmanl"
)

// monitoredNode is a node whose monitor hears what a test says.
type monitoredNode struct {
	node.Node

	kernel *fakekernel.Kernel
}

func (n monitoredNode) Monitor() (*rdmanl.Monitor, error) { return n.kernel.Monitor() }

// TestEvents tells what the kernel's monitor said of devices. It is absent where
// there is no monitor.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, hasMonitor := range []bool{true, false} {
		clock := newClock()
		sim, _ := simulated(t, clock.now)
		n := monitoredNode{sim.Node(), fakekernel.New(fakekernel.Facts{System: &rdmanl.System{MonitorSupport: &hasMonitor}})}
		watcher := watch(t, n)
		r := &rig{t: t, clock: clock, e: newTestExporter(t, func(c *Config) { c.Node, c.Snapshots, c.Now = n, watcher, clock.now })}
		r.e.Sample(t.Context(), clock.now(), counters.Errors)
		if !hasMonitor {
			r.want(map[string]string{`rdma_device_async_events_total{`: "", `rdma_port_receive_bytes_total{device="mlx5_0"`: "0"})
			continue
		}
		const attached, detached, renamed = `rdma_device_async_events_total{device="mlx5_0",event="NETDEV_ATTACH"`,
			`rdma_device_async_events_total{device="mlx5_0",event="NETDEV_DETACH"`, `rdma_device_async_events_total{device="mlx5_0",event="RENAME"`
		r.want(map[string]string{attached: "0", detached: "0", renamed: ""})
		for _, kind := range []string{"NETDEV_DETACH", "NETDEV_ATTACH", "NETDEV_DETACH", "RENAME"} {
			n.kernel.SendRDMA(rdmanl.Event{Kind: kind, DeviceName: "mlx5_0", Port: 1})
		}
		n.kernel.SendRDMA(rdmanl.Event{Kind: "UNREGISTER", DeviceName: "mlx5_9"})
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for counts, _ := watcher.RDMAEvents(); len(counts) < 4; counts, _ = watcher.RDMAEvents() {
			<-again.C
		}
		r.want(map[string]string{
			attached: "1", detached: "2", renamed: "1",
			`rdma_device_async_events_total{device="mlx5_9"`: "", // which is not there
		})
	}
}

// watch runs a Watcher until the test ends. It has a snapshot.
func watch(t *testing.T, n node.Node) *inventory.Watcher {
	t.Helper()
	reader, err := inventory.NewReader(n)
	if err != nil {
		t.Fatal(err)
	}
	watcher := inventory.NewWatcher(reader, inventory.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	first := watcher.Changed()
	go func() { ended <- watcher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, reader.Close()); !errors.Is(err, context.Canceled) {
			t.Errorf("the watcher ended with %v", err)
		}
	})
	<-first
	return watcher
}
