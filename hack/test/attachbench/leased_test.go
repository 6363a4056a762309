package attachbench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
)

// leased gives addresses that the node has been granted, as the agent does. It
// implements [cniserver.Addresses].
type leased struct{ holder *holder.Holder }

func newLeased(ctx context.Context, b *testing.B, dir string) leased {
	b.Helper()
	disk, err := journal.OS(dir)
	if err != nil {
		b.Fatal(err)
	}
	h, err := holder.Open(disk, holder.Options{Node: "node1", UID: "uid-node1", BootID: "boot", Session: "bench", Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	h.Occupied(nil)
	api := &leaseAPI{}
	if err := h.Sync(ctx, api); err != nil {
		b.Fatal(err)
	}
	lease := api.lease.DeepCopy()
	lease.Status.NodeUID, lease.Status.ObservedGeneration = lease.Spec.NodeUID, lease.Generation
	for i := range rails {
		lease.Status.Pools = append(lease.Status.Pools, v1alpha1.LeasedPool{
			Pool: parent(i), Reserve: 4000, Grants: []v1alpha1.Grant{{Epoch: int64(i + 1), Addresses: []string{leasedRange(i)}}},
		})
	}
	lease.ResourceVersion = "2"
	if err := h.Observe(lease); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = disk.Close() })
	return leased{h}
}

// leasedRange is what the node has of a rail's pool: more than all runs take.
func leasedRange(rail int) string {
	first := netip.AddrFrom4([4]byte{172, byte(16 + rail), 1, 1})
	last := netip.AddrFrom4([4]byte{172, byte(16 + rail), 16, 254})
	return fmt.Sprintf("%s-%s", first, last)
}

func (l leased) Assign(_ context.Context, request holder.Request) (holder.Assignment, error) {
	return l.holder.Assign(request)
}

func (l leased) Release(_ context.Context, key holder.Key, sequence uint64, quarantine map[netip.Addr]string) error {
	_, _, err := l.holder.Release(key, sequence, quarantine)
	return err
}

func (l leased) Waiting(holder.Key) error { return nil } // it never does

func (l leased) Vouch(key holder.Key) { l.holder.Vouch(key) }

func (l leased) Ready() error { return l.holder.Ready() }

// leaseAPI has the lease of one node. It implements [holder.API].
type leaseAPI struct{ lease *v1alpha1.AddressLease }

func (a *leaseAPI) Lease(context.Context) (*v1alpha1.AddressLease, error) {
	if a.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "addressleases"}, "node1")
	}
	return a.lease.DeepCopy(), nil
}

func (a *leaseAPI) CreateLease(_ context.Context, lease *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	a.lease = lease.DeepCopy()
	a.lease.ResourceVersion, a.lease.Generation = "1", 1
	return a.lease.DeepCopy(), nil
}

func (a *leaseAPI) UpdateLease(context.Context, *v1alpha1.AddressLease) (*v1alpha1.AddressLease, error) {
	return nil, errors.New("nobody else writes the lease")
}
