package ipambench

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/hack/test/api"
	"railhead/internal/ipam"
	"railhead/internal/ipam/holder"
)

// patience is how long anything may take before the run is given up.
const patience = 5 * time.Minute

// pool makes a pool of a whole subnet.
func (f *fleet) pool(b *testing.B, name, subnet string) holder.PoolRef {
	b.Helper()
	prefix := netip.MustParsePrefix(subnet)
	version := int64(4)
	if prefix.Addr().Is6() {
		version = 6
	}
	last := lastOf(prefix)
	pool := &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v2beta1.IPPoolSpec{
			IPVersion: &version, Subnet: subnet,
			IPs: []string{prefix.Addr().Next().String() + "-" + last.Prev().String()},
		},
	}
	if err := f.Create(b.Context(), pool); err != nil {
		b.Fatal(err)
	}
	return holder.PoolRef{Name: name, Subnet: prefix}
}

// lastOf is the last address of a subnet.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// rails makes eight pools of 65,534 addresses each, which nobody had an address of
// before.
func (f *fleet) rails(b *testing.B) []holder.PoolRef {
	b.Helper()
	var refs []holder.PoolRef
	for range rails {
		refs = append(refs, f.pool(b, fmt.Sprintf("rail-%d", f.subnets), fmt.Sprintf("10.%d.0.0/16", f.subnets)))
		f.subnets++
	}
	return refs
}

// rails is how many addresses a pod has.
const rails = 8

// rate starts pods on all nodes, which never had an address of these pools: all have
// to be granted before they are assigned.
func (f *fleet) rate(b *testing.B, each int) started {
	b.Helper()
	pools := f.rails(b)
	result := f.startAll(b, f.agents, f.pods(b, pools[0].Name, f.agents, each, pools))
	f.end(b, f.agents, result)
	f.awaitEndpoints(b, 0)
	return result
}

// waits is for how long pods wait for their addresses, in order: where their node
// has none of these pools yet, and where it has a reserve of them.
type waits struct {
	granted, reserved []time.Duration
	needy             int // pods that did not start without the API server though there was a reserve
}

// offline is for how long the API server is kept from a pod that should not need it.
const offline = 10 * time.Second

// wait starts pods with an address of each rail, one after the other on one node
// after the other.
func (f *fleet) wait(b *testing.B, agents, each int) waits {
	b.Helper()
	pools := f.rails(b)
	var w waits
	for i, a := range f.agents[:agents] {
		one := f.agents[i : i+1]
		requests := f.pods(b, fmt.Sprintf("%s-%d", pools[0].Name, i), one, 1+each, pools)
		first := f.start(b, one, [][]holder.Request{requests[0][:1]})
		w.granted = append(w.granted, first.each...)
		for _, r := range requests[0][1:] {
			f.awaitReserve(b, a, pools)
			letGo := f.agentSide.Hold()
			giveUp := time.AfterFunc(offline, letGo)
			next := f.start(b, one, [][]holder.Request{{r}})
			if !giveUp.Stop() {
				w.needy++
			}
			letGo()
			w.reserved = append(w.reserved, next.each...)
			f.end(b, one, next)
		}
		f.end(b, one, first)
	}
	slices.SortFunc(w.granted, cmp.Compare)
	slices.SortFunc(w.reserved, cmp.Compare)
	return w
}

// awaitReserve waits until a node has an address of each pool that no pod has.
func (f *fleet) awaitReserve(b *testing.B, a *api.Agent, pools []holder.PoolRef) {
	b.Helper()
	await(b, "a reserve of "+a.Node, func(ctx context.Context) (bool, error) {
		var lease v1alpha1.AddressLease
		if err := f.Get(ctx, client.ObjectKey{Name: a.Node}, &lease); err != nil {
			return false, err
		}
		used := map[string]int64{}
		for _, given := range a.Assignments() {
			for _, g := range given.Addresses {
				used[g.Pool]++
			}
		}
		for _, pool := range pools {
			if granted(&lease, pool.Name) <= used[pool.Name] {
				return false, nil
			}
		}
		return true, nil
	})
}

// granted is how many addresses of a pool a lease grants.
func granted(lease *v1alpha1.AddressLease, pool string) int64 {
	var n int64
	for _, p := range lease.Status.Pools {
		for _, grant := range p.Grants {
			if set, err := ipam.ParseRanges(grant.Addresses); err == nil && p.Pool == pool {
				n += ipam.Count(set)
			}
		}
	}
	return n
}

// await asks until something is so.
func await(b *testing.B, what string, isSo func(context.Context) (bool, error)) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	for {
		ok, err := isSo(ctx)
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("still waiting for %s: %v", what, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// awaitEndpoints waits until there are that many SpiderEndpoints.
func (f *fleet) awaitEndpoints(b *testing.B, wanted int) {
	b.Helper()
	await(b, fmt.Sprintf("%d SpiderEndpoints", wanted), func(ctx context.Context) (bool, error) {
		var list v2beta1.SpiderEndpointList
		err := f.List(ctx, &list, client.Limit(1))
		n := len(list.Items)
		if list.RemainingItemCount != nil {
			n += int(*list.RemainingItemCount)
		}
		return err == nil && n == wanted, err
	})
}
