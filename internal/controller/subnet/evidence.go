package subnet

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// evidence is what a pod, or a ReplicaSet or Job, says for the application of
// another vendor that controls it.
type evidence struct {
	owner       types.UID
	annotations map[string]string
	path        *field.Path
	since       time.Time
	name        string
}

// evidence lists what speaks for an application, the latest last.
func (r *reconciler) evidence(ctx context.Context, app policy.Application) ([]evidence, error) {
	var found []evidence
	for _, list := range []client.ObjectList{podMetadataList(), &appsv1.ReplicaSetList{}, &batchv1.JobList{}} {
		if err := r.client.List(ctx, list, client.MatchingFields{byController: applicationRequest(app).String()}); err != nil {
			return nil, err
		}
		for _, object := range objectsOf(list) {
			owner := metav1.GetControllerOf(object)
			if owner == nil || object.GetDeletionTimestamp() != nil {
				continue
			}
			e := evidence{
				owner: owner.UID, annotations: object.GetAnnotations(), path: field.NewPath("metadata", "annotations"),
				since: object.GetCreationTimestamp().Time, name: object.GetName(),
			}
			if w, ok := workloadOf(object); ok {
				e.annotations, e.path = w.annotations, w.path
			}
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b evidence) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name))
	})
	return found, nil
}

// Fields that the cache has an index of. Values are those of applicationRequest.
const (
	byOwner      = "owner"      // of pools: whose own they are
	byController = "controller" // of pods, ReplicaSets and Jobs: the application of another vendor that controls them
)

// index is one that the cache keeps.
type index struct {
	object client.Object
	field  string
	values client.IndexerFunc
}

func indexes() []index {
	return []index{
		{&v2beta1.SpiderIPPool{}, byOwner, func(object client.Object) []string {
			pool, ok := object.(*v2beta1.SpiderIPPool)
			if !ok {
				return nil
			}
			app, ok := ownerOf(pool)
			if !ok {
				return nil
			}
			return []string{applicationRequest(app).String()}
		}},
		{podMetadata(), byController, controllerIndex},
		{&appsv1.ReplicaSet{}, byController, controllerIndex},
		{&batchv1.Job{}, byController, controllerIndex},
	}
}

// controllerIndex is the application of another vendor that controls an object.
func controllerIndex(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || isKnown(owner.APIVersion, owner.Kind) {
		return nil
	}
	return []string{applicationRequest(ownerApplication(object.GetNamespace(), owner)).String()}
}

// podMetadata is what is read of pods.
func podMetadata() *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

// podMetadataList is a list of such.
func podMetadataList() *metav1.PartialObjectMetadataList {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	return pods
}

// objectsOf are the objects of a list.
func objectsOf(list client.ObjectList) []client.Object {
	var objects []client.Object
	_ = meta.EachListItem(list, func(object runtime.Object) error { // fails for what is no list
		if o, ok := object.(client.Object); ok {
			objects = append(objects, o)
		}
		return nil
	})
	return objects
}
