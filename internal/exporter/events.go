package exporter

import (
	"maps"
	"slices"

	"railhead/internal/inventory"
)

// events appends what the kernel's monitor told of a device. A root device has
// those that every kernel with a monitor tells of from zero, so that the first
// one is seen as growth; of VFs there are many, which have none before their
// first.
func (w *statusWriter) events(d *inventory.Device) {
	if !w.hasMonitor {
		return
	}
	own := map[string]uint64{}
	if d.IsRoot() {
		for _, kind := range monitored() {
			own[kind] = 0
		}
	}
	for _, e := range w.heard {
		if e.Device == d.RDMA.Name {
			own[e.Kind] = e.Count
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(own)) {
		w.row(own[kind], statusKey{family: "rdma_device_async_events", labels: [3]string{d.RDMA.Name, kind}}, "device", "event")
	}
}

// hear asks for the events that there were so far.
func (w *statusWriter) hear() {
	if snapshots := w.e.config.Snapshots; snapshots != nil {
		w.heard, w.hasMonitor = snapshots.RDMAEvents()
	}
}

// monitored are the kinds of events since the monitor is there (Linux 6.12).
func monitored() []string {
	return []string{"REGISTER", "UNREGISTER", "NETDEV_ATTACH", "NETDEV_DETACH"}
}
