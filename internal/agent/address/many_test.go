package address

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"railhead/internal/ipam/holder"
)

// TestMany has many pods come and go at once, more than there are addresses, and
// wants no address to be with two of them, all addresses to be had again, two
// requests a pod, and far fewer for the lease.
func TestMany(t *testing.T) {
	t.Parallel()
	const pods, addresses = 200, 40
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(8, addresses, addresses))
		r := f.ready(t)
		var mu sync.Mutex
		has := map[netip.Addr]string{}
		live := func(request holder.Request) error {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
			defer cancel()
			a, err := r.Assign(ctx, request)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, given := range a.Addresses {
				if other := has[given.Prefix.Addr()]; other != "" {
					t.Errorf("%s is with %s and %s", given.Prefix, other, request.Pod.Name)
				}
				has[given.Prefix.Addr()] = request.Pod.Name
			}
			mu.Unlock()
			time.Sleep(3 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			for _, given := range a.Addresses {
				delete(has, given.Prefix.Addr())
			}
			return r.Release(ctx, a.Key, a.Sequence, nil)
		}
		var wg sync.WaitGroup
		for i := range pods {
			request := f.pod(fmt.Sprintf("pod-%d", i), "rail0", "rail1")
			wg.Go(func() {
				if err := live(request); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		if left := r.Assignments(); len(left) != 0 {
			t.Errorf("left are %+v", left)
		}
		if made, gone := f.api.Count("create "+endpointsPath), counts(f.api, "delete", endpointsPath); made > pods || gone > pods {
			t.Errorf("%d endpoints were made and %d deleted, want %d at most", made, gone, pods)
		}
		if read := counts(f.api, "get", endpointsPath); read > 0 {
			t.Errorf("%d endpoints were read, want none", read)
		}
		if writes := f.api.Count("update " + leasesPath + "/n1"); writes > pods/4 {
			t.Errorf("the lease was written %d times for %d pods", writes, pods)
		}
		for i := range addresses {
			r.assign(t, f.pod(fmt.Sprintf("last-%d", i), "rail0", "rail1"))
		}
	})
}
