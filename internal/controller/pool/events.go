package pool

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// batch is how long changes are gathered: a thousand pods that start within it
// are one write for each of their pools.
const batch = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// all is the request to look at all pools: the rules of one ask the others.
func all() reconcile.Request { return reconcile.Request{} }

func named(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
}

// ofPools looks at a pool at once if it means something else, and then at the
// others, too. Of new numbers, which are ours, nothing hangs.
func ofPools() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			q.Add(named(e.Object.GetName()))
			if !e.IsInInitialList {
				q.AddAfter(all(), batch)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			q.Add(named(e.ObjectNew.GetName()))
			if means(e.ObjectOld) != means(e.ObjectNew) {
				q.AddAfter(all(), batch)
			}
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(all(), batch) },
	}
}

// meaning is what of an object others are held against.
type meaning struct {
	generation int64
	deleting   bool
}

func means(o client.Object) meaning {
	return meaning{o.GetGeneration(), o.GetDeletionTimestamp() != nil}
}

// ofEndpoints counts the pools that a pod got addresses of, or gave them back to.
func ofEndpoints() handler.EventHandler {
	count := func(q queue, objects ...client.Object) {
		for _, object := range objects {
			for _, name := range pools(object) {
				q.AddAfter(named(name), batch)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList { // pools are, too, and count all of it
				count(q, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { count(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { count(q, e.Object) },
	}
}

// ofLedgers looks at the pool of a ledger: who else has addresses, and whether one
// that was deleted may go.
func ofLedgers() handler.EventHandler {
	look := func(q queue, object client.Object) {
		if ledger, ok := object.(*v1alpha1.PoolLedger); ok {
			q.AddAfter(named(ledger.Spec.Pool), batch)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { look(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { look(q, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(q, e.Object) },
	}
}

// pools are the names of the pools that a SpiderEndpoint's addresses are of.
func pools(object client.Object) (names []string) {
	endpoint, ok := object.(*v2beta1.SpiderEndpoint)
	if !ok {
		return nil
	}
	for _, i := range endpoint.Status.Current.IPs {
		for _, name := range []*string{i.IPv4Pool, i.IPv6Pool} {
			if name != nil && *name != "" {
				names = append(names, *name)
			}
		}
	}
	return names
}

// ofRules looks at all pools when what they are reviewed by changes.
func ofRules() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(all(), batch) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			// ConfigMaps have no generation.
			if means(e.ObjectOld) != means(e.ObjectNew) || e.ObjectNew.GetGeneration() == 0 {
				q.AddAfter(all(), batch)
			}
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(all(), batch) },
	}
}
