package holder

import (
	"fmt"
	"reflect"
	"strconv"

	"railhead/api/railhead/v1alpha1"
)

// Observe takes a version of the lease. One that is not newer than those seen is
// ignored. (R6) The lease must not be changed afterwards. The error names what of
// the newest status makes no sense: all else was taken, and what is nonsense
// changes nothing of what was known. Sync says so, too, as long as it lasts.
func (h *Holder) Observe(lease *v1alpha1.AddressLease) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.observe(lease, false); err != nil {
		return err
	}
	return h.nonsense
}

// observe takes a version of the lease, an older one only if the store itself
// was set back. After an error it took nothing.
func (h *Holder) observe(lease *v1alpha1.AddressLease, setBack bool) error {
	if lease.Name != h.options.Node {
		return fmt.Errorf("lease %s is not of node %s", lease.Name, h.options.Node)
	}
	version, err := versionOf(lease)
	if err != nil {
		return err
	}
	if h.seen != nil && !setBack && (version < h.seen.Version || version == h.seen.Version && h.lease != nil) {
		return nil
	}
	now := &status{Version: version, NodeUID: lease.Status.NodeUID, Pools: lease.Status.Pools}
	if _, err := leasedOf(now); err != nil {
		h.nonsense = fmt.Errorf("lease %s: %w", lease.Name, err)
	} else {
		h.nonsense = nil
	}
	h.lease = lease
	h.touch() // the answer may decide about pods that wait
	if h.seen != nil && h.seen.NodeUID == now.NodeUID && reflect.DeepEqual(h.seen.Pools, now.Pools) {
		h.seen = now
	} else {
		// R5: it is in force even if it cannot be journaled; an assignment out of it is not.
		_, _ = h.commitAnyway(record{Lease: now})
	}
	h.notify()
	h.balance()
	return nil
}

// versionOf is the resource version, which grows with each write of the store.
func versionOf(lease *v1alpha1.AddressLease) (uint64, error) {
	version, err := strconv.ParseUint(lease.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("lease %s: resourceVersion %q: want a number", lease.Name, lease.ResourceVersion)
	}
	return version, nil
}
