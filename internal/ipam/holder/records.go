package holder

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/journal"
)

// record is what the journal has lines of: one thing that happened, or more at
// once. What is kept in memory follows from the records alone.
type record struct {
	Opened   *opened                 `json:"opened,omitempty"`
	Ready    bool                    `json:"ready,omitempty"` // assigning began (R7)
	Lease    *status                 `json:"lease,omitempty"`
	Earlier  *earlier                `json:"earlier,omitempty"`
	Released *released               `json:"released,omitempty"`
	Returned []v1alpha1.Return       `json:"returned,omitempty"`
	Assigned *Assignment             `json:"assigned,omitempty"`
	Strays   *strays                 `json:"strays,omitempty"`
	Freed    map[string][]netip.Addr `json:"freed,omitempty"` // by pool, longest free first
}

// opened is the first line: whose journal it is.
type opened struct {
	Node     string    `json:"node"`
	NodeUID  types.UID `json:"nodeUID"`
	BootID   string    `json:"bootID"`
	Session  string    `json:"session"`
	Sequence uint64    `json:"sequence,omitempty"` // of the last assignment
}

// status is the status of a lease.
type status struct {
	Version uint64                `json:"version"` // of the object
	NodeUID types.UID             `json:"nodeUID,omitempty"`
	Pools   []v1alpha1.LeasedPool `json:"pools,omitempty"`
}

// earlier is what a run whose journal is lost was giving back.
type earlier struct {
	Returns []v1alpha1.Return `json:"returns,omitempty"`
}

// released is an assignment that ended.
type released struct {
	Key
	Sequence uint64 `json:"sequence"`
}

// strays are addresses in pods' namespaces that no assignment names, by where.
type strays struct {
	Addresses map[netip.Addr]string `json:"addresses,omitempty"`
}

// compactFrom is the size in bytes below which a journal is left alone.
const compactFrom = 1 << 20

// put appends a record. First it catches up where the journal lacks something.
// A journal that only grew too long is appended to even if it cannot be written
// anew.
func (h *Holder) put(r record) (int64, error) {
	if h.behind || h.journal.Size() > h.compactAt {
		if err := h.compact(); err != nil && h.behind {
			return 0, err
		}
	}
	position, err := h.journal.Append(r)
	if errors.Is(err, journal.ErrBroken) { // by an earlier record that nobody needed
		if err = h.compact(); err == nil {
			position, err = h.journal.Append(r)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	h.position = position
	return position, nil
}

// commit has something happen if it is in the journal.
func (h *Holder) commit(r record) (int64, error) {
	position, err := h.put(r)
	if err != nil {
		return 0, err
	}
	h.apply(r)
	return position, nil
}

// commitAnyway has something happen even if it cannot be journaled now. Addresses
// that it frees stay in limbo until it is (R11).
func (h *Holder) commitAnyway(r record) (int64, error) {
	position, err := h.put(r)
	h.behind = h.behind || err != nil
	h.apply(r)
	return position, err
}

// compact writes the journal anew from memory.
func (h *Holder) compact() error {
	if err := h.journal.Compact(h.snapshot()); err != nil {
		h.compactAt = h.journal.Size() + compactFrom
		h.behind = h.behind || !errors.Is(err, journal.ErrUnchanged)
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	h.behind, h.compactAt = false, max(compactFrom, 4*h.journal.Size())
	for _, name := range slices.Sorted(maps.Keys(h.limbo)) {
		for addr := range h.limbo[name] {
			p, s := h.slot(name, addr)
			p.change(s, func(s *slot) { s.limbo = false })
		}
	}
	if len(h.limbo) > 0 {
		h.limbo = map[string]map[netip.Addr]bool{}
		h.touch()
		h.notify()
	}
	return nil
}

// snapshot is memory as records.
func (h *Holder) snapshot() []record {
	all := []record{{Opened: &opened{
		Node: h.options.Node, NodeUID: h.options.UID, BootID: h.options.BootID, Session: h.session, Sequence: h.sequence,
	}}}
	if h.seen != nil {
		all = append(all, record{Lease: h.seen})
	}
	for _, e := range h.sortedPods() {
		all = append(all, record{Assigned: e.Assignment})
	}
	last := record{Ready: h.ready, Returned: h.returns(true), Freed: h.freedOrder()}
	if len(h.strays) > 0 {
		last.Strays = &strays{maps.Clone(h.strays)}
	}
	return append(all, last)
}

// freedOrder is which idle addresses somebody had, the longest free first.
func (h *Holder) freedOrder() map[string][]netip.Addr {
	order := map[string][]netip.Addr{}
	for name, p := range h.pools {
		some := p.sorted(func(s *slot) bool { return s.freed > 0 })
		slices.SortStableFunc(some, func(a, b *slot) int { return cmp.Compare(a.freed, b.freed) })
		for _, s := range some {
			order[name] = append(order[name], s.addr)
		}
	}
	return order
}

// sortedPods returns all assignments, the oldest first.
func (h *Holder) sortedPods() []*entry {
	return slices.SortedFunc(maps.Values(h.pods), func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.PodUID, b.PodUID))
	})
}
