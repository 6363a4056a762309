package registration

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// queue is where requests wait.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Setup has mgr run r, once it leads, whenever either configuration is not what it
// was, and after Poke. mgr may list and watch both.
func (r *Registration) Setup(mgr ctrl.Manager) error {
	ours := builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == Name }))
	always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request()}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhook-registration").
		Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, always, ours).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, always, ours).
		WatchesRawSource(source.Func(r.begin)).
		Complete(r)
}

// CacheByObject has the cache of a manager hold our configurations and no others,
// which may be many and have long CA bundles.
func CacheByObject() map[client.Object]cache.ByObject {
	ours := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", Name)}
	return map[client.Object]cache.ByObject{
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   ours,
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: ours,
	}
}

// begin takes the queue of the controller that starts, and has a first look taken.
func (r *Registration) begin(_ context.Context, q queue) error {
	r.queue.Store(&q)
	q.Add(request())
	return nil
}

// Poke has both configurations looked at, because the configuration, the annotated
// namespaces or the bundle changed. It never blocks, and before Setup's manager
// leads it does nothing.
func (r *Registration) Poke() {
	if q := r.queue.Load(); q != nil {
		(*q).Add(request())
	}
}

// request is the only one that there is.
func request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: Name}}
}
