package subnet

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// workload is what is read of one of Kubernetes' own kinds of workload.
type workload struct {
	groupVersion, kind string
	object             metav1.Object
	annotations        map[string]string // of its pods
	path               *field.Path       // where these stand
	pods               int64             // how many it wants at a time
}

// application is whose pods they are: the workload itself, or what controls a
// ReplicaSet or a Job. Deployments of something else are their own: their name
// is a user's.
func (w workload) application() policy.Application {
	if owner := w.controller(); owner != nil {
		return ownerApplication(w.object.GetNamespace(), owner)
	}
	return policy.Application{
		GroupVersion: w.groupVersion, Kind: w.kind,
		Namespace: w.object.GetNamespace(), Name: w.object.GetName(),
	}
}

// controller is what controls a ReplicaSet or a Job, nil if it is its own.
func (w workload) controller() *metav1.OwnerReference {
	if w.kind != "ReplicaSet" && w.kind != "Job" {
		return nil
	}
	return metav1.GetControllerOf(w.object)
}

// same says whether two states of a workload want the same.
func (w workload) same(other workload) bool {
	if w.object == nil || other.object == nil {
		return false
	}
	return w.pods == other.pods && w.object.GetUID() == other.object.GetUID() && maps.Equal(ours(w.annotations), ours(other.annotations))
}

// workloadOf reads a workload; false if the object is none.
func workloadOf(object client.Object) (workload, bool) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return workload{appsV1, "Deployment", o, o.Spec.Template.Annotations, templatePath(), orOne(o.Spec.Replicas)}, true
	case *appsv1.ReplicaSet:
		return workload{appsV1, "ReplicaSet", o, o.Spec.Template.Annotations, templatePath(), orOne(o.Spec.Replicas)}, true
	case *appsv1.StatefulSet:
		return workload{appsV1, "StatefulSet", o, o.Spec.Template.Annotations, templatePath(), orOne(o.Spec.Replicas)}, true
	case *appsv1.DaemonSet:
		return workload{appsV1, "DaemonSet", o, o.Spec.Template.Annotations, templatePath(), int64(o.Status.DesiredNumberScheduled)}, true
	case *batchv1.Job:
		return workload{batchV1, "Job", o, o.Spec.Template.Annotations, templatePath(), jobPods(&o.Spec)}, true
	case *batchv1.CronJob:
		template := &o.Spec.JobTemplate
		path := field.NewPath("spec", "jobTemplate", "spec", "template", "metadata", "annotations")
		return workload{batchV1, "CronJob", o, template.Spec.Template.Annotations, path, jobPods(&template.Spec)}, true
	}
	return workload{}, false
}

const (
	appsV1  = "apps/v1"
	batchV1 = "batch/v1"
)

// isKnown says whether a controller of pods, or of what makes them, is one of
// Kubernetes' own, which are read themselves.
func isKnown(groupVersion, kind string) bool {
	_, ok := newWorkload(groupVersion, kind)
	return ok
}

// newWorkload is an empty object of a kind of workload.
func newWorkload(groupVersion, kind string) (client.Object, bool) {
	switch groupVersion + " " + kind {
	case "apps/v1 Deployment":
		return &appsv1.Deployment{}, true
	case "apps/v1 ReplicaSet":
		return &appsv1.ReplicaSet{}, true
	case "apps/v1 StatefulSet":
		return &appsv1.StatefulSet{}, true
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}, true
	case "batch/v1 Job":
		return &batchv1.Job{}, true
	case "batch/v1 CronJob":
		return &batchv1.CronJob{}, true
	}
	return nil, false
}

// templatePath is where the annotations of most kinds' pods stand.
func templatePath() *field.Path {
	return field.NewPath("spec", "template", "metadata", "annotations")
}

// jobPods is how many pods of a Job run at a time. One that has ended gives its
// address back.
func jobPods(spec *batchv1.JobSpec) int64 {
	pods := orOne(spec.Parallelism)
	if spec.Completions != nil {
		pods = min(pods, int64(*spec.Completions))
	}
	return pods
}

// orOne is a number of pods, by default one.
func orOne(n *int32) int64 {
	if n == nil {
		return 1
	}
	return int64(*n)
}

// claims says whether annotations want something of subnets.
func claims(annotations map[string]string) bool {
	_, several := annotations[v2beta1.AnnotationSubnets]
	_, single := annotations[v2beta1.AnnotationSubnet]
	return several || single
}

// ours are the annotations that are read here.
func ours(annotations map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range []string{
		v2beta1.AnnotationSubnets, v2beta1.AnnotationSubnet, v2beta1.AnnotationPoolNumber, v2beta1.AnnotationPoolReclaim,
	} {
		if value, ok := annotations[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// ownerApplication is the application that an owner reference names.
func ownerApplication(namespace string, owner *metav1.OwnerReference) policy.Application {
	return policy.Application{GroupVersion: owner.APIVersion, Kind: owner.Kind, Namespace: namespace, Name: owner.Name}
}

// podApplication is a pod that nothing controls.
func podApplication(pod metav1.Object) policy.Application {
	return policy.Application{GroupVersion: "v1", Kind: "Pod", Namespace: pod.GetNamespace(), Name: pod.GetName()}
}

// withUID is an application that is there.
func withUID(app policy.Application, uid types.UID) policy.Application {
	app.UID = uid
	return app
}
