package pool

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/spiderpool/v2beta1"
)

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
}

// TestStorm lets a thousand pods start, change and end within a moment, with a
// controller that works meanwhile: their pool is looked at once for each time
// that changes are gathered.
func TestStorm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, h, looks := newQueue(), ofEndpoints(), map[string]int{}
		go func() {
			for {
				request, ended := q.Get()
				if ended {
					return
				}
				looks[request.Name]++
				q.Done(request)
			}
		}()
		for i := range 1000 {
			e := endpoint(fmt.Sprint(i), "rail0", "10.0.0.1")
			h.Create(t.Context(), event.CreateEvent{Object: e}, q)
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: e, ObjectNew: endpoint(fmt.Sprint(i), "rail1", "10.0.1.1")}, q)
			h.Delete(t.Context(), event.DeleteEvent{Object: e}, q)
		}
		<-time.After(2 * batch)
		synctest.Wait()
		q.ShutDown()
		if looks["rail0"] != 1 || looks["rail1"] != 1 || len(looks) != 2 {
			t.Errorf("looks at pools: %v, want one at rail0 and one at rail1", looks)
		}
	})
}

// TestAsked wants others to be looked at when a pool means something else, and
// not when it was counted.
func TestAsked(t *testing.T) {
	t.Parallel()
	counted, changed := pool("rail0", 0), pool("rail0", 0)
	counted.Status.AllocatedIPCount = new(int64(1))
	changed.Generation = 2
	update := func(old, now *v2beta1.SpiderIPPool) func(handler.EventHandler, queue) {
		return func(h handler.EventHandler, q queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: now}, q)
		}
	}
	create := func(e event.CreateEvent) func(handler.EventHandler, queue) {
		return func(h handler.EventHandler, q queue) { h.Create(t.Context(), e, q) }
	}
	remove := func(h handler.EventHandler, q queue) {
		h.Delete(t.Context(), event.DeleteEvent{Object: going("rail0", 0)}, q)
	}
	tests := map[string]struct {
		do   func(h handler.EventHandler, q queue)
		want int
	}{
		"counted":      {update(pool("rail0", 0), counted), 1},
		"changed":      {update(counted, changed), 2},
		"deleted":      {update(pool("rail0", 0), going("rail0", 0)), 2},
		"gone":         {remove, 1},
		"created":      {create(event.CreateEvent{Object: counted}), 2},
		"there before": {create(event.CreateEvent{Object: counted, IsInInitialList: true}), 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				tt.do(ofPools(), q)
				<-time.After(2 * batch)
				synctest.Wait()
				if q.Len() != tt.want {
					t.Errorf("%d requests, want %d", q.Len(), tt.want)
				}
				q.ShutDown()
			})
		})
	}
}

// TestPoolsOf wants the pools of both families of all interfaces.
func TestPoolsOf(t *testing.T) {
	t.Parallel()
	e := endpoint("a", "rail0", "10.0.0.1")
	e.Status.Current.IPs = append(e.Status.Current.IPs,
		v2beta1.EndpointInterface{Interface: "net2", IPv6Pool: new("rail1-v6")}, v2beta1.EndpointInterface{Interface: "net3"})
	if got := fmt.Sprint(pools(e)); got != "[rail0 rail1-v6]" {
		t.Errorf("pools %s", got)
	}
	if got := pools(pool("rail0", 0)); got != nil {
		t.Errorf("pools of what is no endpoint: %q", got)
	}
}
