package holder

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/railhead/v1alpha1"
)

// API reads and writes the node's lease. Its errors are those of
// k8s.io/apimachinery/pkg/api/errors.
type API interface {
	// Lease reads it live (quorum).
	Lease(ctx context.Context) (*v1alpha1.AddressLease, error)
	CreateLease(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error)
	// UpdateLease writes the spec, by compare-and-swap on the version given.
	UpdateLease(ctx context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error)
}

// Dirty says whether Sync has something to do. With time it may become so by
// itself.
func (h *Holder) Dirty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unread || h.behind || h.changes != h.wrote || h.overdue()
}

// Sync has the lease say what the node wants and gives back. It reads the lease
// first where what is known of it may be wrong; after a conflict it reads it
// and tries once more.
func (h *Holder) Sync(ctx context.Context, api API) error {
	h.syncing.Lock()
	defer h.syncing.Unlock()
	err := h.write(ctx, api)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		err = h.write(ctx, api)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.behind && !errors.Is(err, ErrDisk) {
		err = errors.Join(err, fmt.Errorf("%w: it lacks what happened last", ErrDisk))
	}
	return errors.Join(err, h.nonsense)
}

// write reads the lease if need be, and writes it if it differs.
func (h *Holder) write(ctx context.Context, api API) error {
	if err := h.read(ctx, api); err != nil {
		return err
	}
	lease, changes, err := h.compose()
	if lease == nil || err != nil {
		return err
	}
	var answer *v1alpha1.AddressLease
	if lease.ResourceVersion == "" {
		answer, err = api.CreateLease(ctx, lease)
	} else {
		answer, err = api.UpdateLease(ctx, lease)
	}
	return h.written(answer, changes, err)
}

// read reads the lease live where it is not known for sure (R6, R8).
func (h *Holder) read(ctx context.Context, api API) error {
	h.mu.Lock()
	unread, before := h.unread, uint64(0)
	if h.seen != nil {
		before = h.seen.Version
	}
	h.mu.Unlock()
	if !unread {
		return nil
	}
	lease, err := api.Lease(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("lease %s: read: %w", h.options.Node, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.lease, h.unread = nil, false
		return nil
	}
	version, err := versionOf(lease)
	if err != nil {
		return err
	}
	// A quorum read does not go back. If it did, the store was restored from a backup.
	if err := h.observe(lease, version < before); err != nil {
		return err
	}
	h.isAnnounced(lease)
	h.unread = false
	return nil
}

// takeOver makes an earlier run's returns this one's, as long as this one did
// not say that it is there. (R7) They are those of the very version that the
// next write is based on: one of them dropped could be used here while the
// controller gives it to another node.
func (h *Holder) takeOver() error {
	if h.announced {
		return nil
	}
	var of earlier
	if h.lease != nil && h.lease.Spec.NodeUID == h.options.UID {
		of.Returns = h.lease.Spec.Returns
	}
	_, err := h.commit(record{Earlier: &of})
	return err
}

// isAnnounced notes that a lease that was read has this run's session: its
// write succeeded, whatever was answered.
func (h *Holder) isAnnounced(lease *v1alpha1.AddressLease) bool {
	if lease.Spec.Session == h.session && lease.Spec.NodeUID == h.options.UID {
		h.announced = true
		h.begin()
	}
	return h.announced
}

// compose returns the lease to write, nil if it says so already, and the
// changes that are in it. All that it gives back is on disk by then (R5).
func (h *Holder) compose() (*v1alpha1.AddressLease, uint64, error) {
	h.mu.Lock()
	if h.behind {
		_ = h.compact() // else what the journal lacks is not said
	}
	if err := h.takeOver(); err != nil {
		h.mu.Unlock()
		return nil, 0, err
	}
	h.begin()
	h.balance()
	lease := &v1alpha1.AddressLease{ObjectMeta: metav1.ObjectMeta{Name: h.options.Node}}
	if h.lease != nil {
		lease = h.lease.DeepCopy()
	}
	spec, changes, position := h.spec(), h.changes, h.position
	same := h.lease != nil && equality.Semantic.DeepEqual(lease.Spec, spec)
	if same {
		h.wrote = changes
	}
	h.mu.Unlock()
	if same {
		return nil, 0, nil
	}
	if len(spec.Returns) > 0 {
		if err := h.sync(position); err != nil {
			return nil, 0, err
		}
	}
	lease.Spec = spec
	return lease, changes, nil
}

// sync waits for the disk.
func (h *Holder) sync(position int64) error {
	if err := h.journal.Sync(position); err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.behind = true
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	return nil
}

// written takes the answer of a write.
func (h *Holder) written(answer *v1alpha1.AddressLease, changes uint64, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		// R8: it may have been written all the same; and after a conflict there is something newer.
		h.unread = h.unread || !apierrors.IsInvalid(err)
		return fmt.Errorf("lease %s: write: %w", h.options.Node, err)
	}
	h.wrote = max(h.wrote, changes)
	err = h.observe(answer, false)
	if !h.isAnnounced(answer) {
		err = errors.Join(err, fmt.Errorf("lease %s: the answer to a write has another session", h.options.Node))
	}
	return err
}
