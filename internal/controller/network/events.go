package network

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/spiderpool/v2beta1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func named(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// ofConfigs looks at a SpiderMultusConfig, and at the others that want to make
// the same NetworkAttachmentDefinition when it no longer stands in their way.
func (r *Reconciler) ofConfigs() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(named(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			q.Add(named(e.ObjectNew))
			if !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) {
				r.rivals(e.ObjectOld, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { r.rivals(e.Object, q) },
	}
}

// rivals are those that want the NetworkAttachmentDefinition of this name, too.
func (r *Reconciler) rivals(config client.Object, q queue) {
	name := config.GetAnnotations()[v2beta1.AnnotationNADName]
	if name == "" {
		name = config.GetName()
	}
	r.makers(config.GetNamespace(), name, q)
}

// makers looks at the SpiderMultusConfigs that want this NetworkAttachmentDefinition.
func (r *Reconciler) makers(namespace, name string, q queue) {
	for _, n := range r.Catalog.Networks() {
		if n.Namespace == namespace && n.NAD == name {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: n.Namespace, Name: n.Name}})
		}
	}
}

// ofDefinitions looks at the SpiderMultusConfig that a NetworkAttachmentDefinition
// is made of, and at any that wants to.
func (r *Reconciler) ofDefinitions() handler.EventHandler {
	look := func(q queue, objects ...client.Object) {
		for _, object := range objects {
			if owner := metav1.GetControllerOf(object); owner != nil && isConfig(*owner) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}})
			}
			r.makers(object.GetNamespace(), object.GetName(), q)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList { // SpiderMultusConfigs are, too, and look at theirs
				look(q, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { look(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { look(q, e.Object) },
	}
}
