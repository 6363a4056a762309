package subnet

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheByObject has the cache of a manager keep of workloads and pods what is
// read of them: a name, owners, how many pods, and annotations of ours.
func CacheByObject() map[client.Object]cache.ByObject {
	slim := cache.ByObject{Transform: slim}
	return map[client.Object]cache.ByObject{
		&appsv1.Deployment{}:  slim,
		&appsv1.ReplicaSet{}:  slim,
		&appsv1.StatefulSet{}: slim,
		&appsv1.DaemonSet{}:   slim,
		&batchv1.Job{}:        slim,
		&batchv1.CronJob{}:    slim,
		podMetadata():         slim,
	}
}

// slim takes from an object what nobody here reads. The cache never writes, so
// nothing of it is lost but memory.
func slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		o.SetLabels(nil)
		o.SetFinalizers(nil)
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Spec = appsv1.DeploymentSpec{Replicas: o.Spec.Replicas, Template: slimTemplate(o.Spec.Template)}
		o.Status = appsv1.DeploymentStatus{}
		o.Annotations = nil
	case *appsv1.ReplicaSet:
		o.Spec = appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas, Template: slimTemplate(o.Spec.Template)}
		o.Status = appsv1.ReplicaSetStatus{}
		o.Annotations = nil
	case *appsv1.StatefulSet:
		o.Spec = appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas, Ordinals: o.Spec.Ordinals, Template: slimTemplate(o.Spec.Template)}
		o.Status = appsv1.StatefulSetStatus{}
		o.Annotations = nil
	case *appsv1.DaemonSet:
		o.Spec = appsv1.DaemonSetSpec{Template: slimTemplate(o.Spec.Template)}
		o.Status = appsv1.DaemonSetStatus{DesiredNumberScheduled: o.Status.DesiredNumberScheduled}
		o.Annotations = nil
	case *batchv1.Job:
		o.Spec = slimJob(o.Spec)
		o.Status = batchv1.JobStatus{}
		o.Annotations = nil
	case *batchv1.CronJob:
		o.Spec = batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: slimJob(o.Spec.JobTemplate.Spec)}}
		o.Status = batchv1.CronJobStatus{}
		o.Annotations = nil
	case *metav1.PartialObjectMetadata:
		o.Annotations = ours(o.Annotations)
	}
	return object, nil
}

func slimTemplate(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: ours(template.Annotations)}}
}

func slimJob(spec batchv1.JobSpec) batchv1.JobSpec {
	return batchv1.JobSpec{Parallelism: spec.Parallelism, Completions: spec.Completions, Template: slimTemplate(spec.Template)}
}
