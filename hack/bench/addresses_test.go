package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/journal"
)

const (
	rails       = 8  // of which each pod has an address
	railReserve = 32 // addresses of each that a node holds beyond those, at most
)

// assignAll has all pods have an address of each rail, as the journal in a
// directory and the node's lease say then.
func assignAll(ctx context.Context, dir string, a *apiServer) (err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	disk, err := journal.OS(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	h, err := holder.Open(disk, holder.Options{
		Node: a.node.NodeName(), UID: a.uid, BootID: strings.TrimSpace(string(boot)), Session: "bench", Now: time.Now,
	})
	if err != nil {
		return err
	}
	h.Occupied(nil)
	if err := h.Sync(ctx, a); err != nil {
		return err
	}
	for i := range a.pods {
		if _, err := h.Assign(request(&a.pods[i])); err != nil {
			return err
		}
	}
	return h.Sync(ctx, a)
}

// grants are so many addresses of each rail.
func grants(count int) []v1alpha1.LeasedPool {
	pools := make([]v1alpha1.LeasedPool, rails)
	for i := range pools {
		first := subnet(i).Addr().Next()
		last := first
		for range count - 1 {
			last = last.Next()
		}
		pools[i] = v1alpha1.LeasedPool{
			Pool: pool(i), Reserve: railReserve,
			Grants: []v1alpha1.Grant{{Epoch: int64(i + 1), Addresses: []string{fmt.Sprintf("%s-%s", first, last)}}},
		}
	}
	return pools
}

// request is what a pod asks for.
func request(pod *metav1.PartialObjectMetadata) holder.Request {
	r := holder.Request{
		Key: holder.Key{PodUID: pod.UID, Sandbox: "sandbox-of-" + string(pod.UID)},
		Pod: types.NamespacedName{Namespace: cmp.Or(pod.Namespace, "default"), Name: pod.Name},
	}
	for i := range rails {
		r.NICs = append(r.NICs, holder.NIC{
			Interface: fmt.Sprintf("net%d", i+1),
			Choices:   []holder.Choice{{Pools: []holder.PoolRef{{Name: pool(i), Subnet: subnet(i)}}}},
		})
	}
	return r
}

func pool(rail int) string { return fmt.Sprintf("rail%d", rail) }

func subnet(rail int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(rail), 0}), 24)
}
