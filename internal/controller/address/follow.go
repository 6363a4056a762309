package address

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// followed passes objects on as they come and go. No queue is used: what is
// known is kept, and a round reads all of it.
func followed[O client.Object](put, remove func(O)) handler.EventHandler {
	pass := func(o client.Object, to func(O)) {
		if object, ok := o.(O); ok {
			to(object)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { pass(e.Object, put) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { pass(e.ObjectNew, put) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { pass(e.Object, remove) },
	}
}
