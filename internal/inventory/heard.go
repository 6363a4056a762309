package inventory

import (
	"cmp"
	"slices"
	"sync"

	"railhead/internal/kernel/rdmanl"
)

// RDMAEvent is a kind of event of an RDMA device.
type RDMAEvent struct {
	Device string // its name; the new one in events of a renaming
	Kind   string // as rdmanl.Event has it: "REGISTER", "NETDEV_DETACH", …
}

// heard counts events of RDMA devices. It is safe for concurrent use.
type heard struct {
	mu     sync.Mutex
	counts map[RDMAEvent]uint64 // nil before there was a monitor
}

// begin says that there is a monitor.
func (h *heard) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = map[RDMAEvent]uint64{}
	}
}

func (h *heard) count(events []rdmanl.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		if e.DeviceName != "" {
			h.counts[RDMAEvent{e.DeviceName, e.Kind}]++
		}
	}
}

// RDMAEventCount is how many events of a kind the kernel told of a device.
type RDMAEventCount struct {
	RDMAEvent
	Count uint64
}

// RDMAEvents returns how many events the kernel's RDMA monitor (Linux 6.12) has
// told of since the Watcher runs, by device and kind, without those that there
// were none of. Where events were lost, they are not among them. Ok is false
// where the kernel has no monitor.
func (w *Watcher) RDMAEvents() (counts []RDMAEventCount, ok bool) {
	h := &w.heard
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		return nil, false
	}
	for e, n := range h.counts {
		counts = append(counts, RDMAEventCount{e, n})
	}
	slices.SortFunc(counts, func(a, b RDMAEventCount) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Kind, b.Kind))
	})
	return counts, true
}
