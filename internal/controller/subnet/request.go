package subnet

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// subnetRequest asks for a SpiderSubnet. It has no namespace, as a request for
// an application always has.
func subnetRequest(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// applicationRequest asks for an application. Its UID is looked up.
func applicationRequest(app policy.Application) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{
		Namespace: app.Namespace,
		Name:      app.GroupVersion + " " + app.Kind + " " + app.Name,
	}}
}

// applicationOf is what applicationRequest made a request of.
func applicationOf(request reconcile.Request) (policy.Application, bool) {
	parts := strings.Split(request.Name, " ")
	if request.Namespace == "" || len(parts) != 3 {
		return policy.Application{}, false
	}
	return policy.Application{GroupVersion: parts[0], Kind: parts[1], Namespace: request.Namespace, Name: parts[2]}, true
}

// ownerOf is whose own pool it is, by its labels.
func ownerOf(pool *v2beta1.SpiderIPPool) (policy.Application, bool) {
	if pool.Labels[v2beta1.LabelOwnerUID] == "" {
		return policy.Application{}, false
	}
	parsed, _ := policy.PoolOf(pool)
	if parsed.Owner == nil || parsed.Owner.Namespace == "" {
		return policy.Application{}, false
	}
	app := *parsed.Owner
	app.UID = ""
	return app, true
}

// ofWorkload asks for the application that a workload is or belongs to.
func ofWorkload(_ context.Context, object client.Object) []reconcile.Request {
	w, ok := workloadOf(object)
	if !ok {
		return nil
	}
	return []reconcile.Request{applicationRequest(w.application())}
}

// ofPod asks for the application of a pod with an annotation of ours whose
// controller is of another vendor, or that has none; workloads of Kubernetes
// speak for their pods themselves.
func ofPod(_ context.Context, object client.Object) []reconcile.Request {
	if !claims(object.GetAnnotations()) {
		return nil
	}
	owner := metav1.GetControllerOf(object)
	switch {
	case owner == nil:
		return []reconcile.Request{applicationRequest(podApplication(object))}
	case isKnown(owner.APIVersion, owner.Kind):
		return nil
	}
	return []reconcile.Request{applicationRequest(ownerApplication(object.GetNamespace(), owner))}
}

// ofReserved asks for the applications that have pools or wait for any:
// addresses of theirs may be reserved now, or free again.
func (r *reconciler) ofReserved(ctx context.Context, object client.Object) []reconcile.Request {
	requests := r.unserved(ctx, object)
	var pools v2beta1.SpiderIPPoolList
	if err := r.client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list pools")
	}
	for i := range pools.Items {
		if app, ok := ownerOf(&pools.Items[i]); ok {
			requests = append(requests, applicationRequest(app))
		}
	}
	return requests
}

// everything asks for all subnets and all applications that have pools or want any.
func (r *reconciler) everything(ctx context.Context, object client.Object) []reconcile.Request {
	requests := r.ofReserved(ctx, object)
	for _, subnet := range r.catalog.Subnets() {
		requests = append(requests, subnetRequest(subnet.Name))
	}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{},
		&batchv1.JobList{}, &batchv1.CronJobList{}, podMetadataList(),
	} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "list applications after a change of settings")
			continue
		}
		for _, object := range objectsOf(list) {
			if w, ok := workloadOf(object); ok && claims(w.annotations) {
				requests = append(requests, ofWorkload(ctx, object)...)
			} else if !ok {
				requests = append(requests, ofPod(ctx, object)...)
			}
		}
	}
	return requests
}
