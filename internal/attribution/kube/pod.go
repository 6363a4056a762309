package kube

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"railhead/internal/attribution"
)

// mirror is the annotation of the pod that stands in the API server for a
// static one. It holds the UID that the kubelet has for that, a hash.
const mirror = "kubernetes.io/config.mirror"

// forgetAfter is how long a pod is still known after it was deleted: its
// devices may come back a little later.
const forgetAfter = 30 * time.Second

// record is what is known of a pod. It is guarded by the Source.
type record struct {
	pod        *attribution.Pod // replaced, never changed
	hash       string           // of a static pod
	controller *metav1.OwnerReference
	labelled   attribution.Workload // what labels tell; zero where they do not
	chain      []types.UID          // owners that were read for it, the nearest first
	isGone     bool
}

// known returns the pod of a record that may be nil.
func (r *record) known() *attribution.Pod {
	if r == nil {
		return nil
	}
	return r.pod
}

// trim drops what a pod's metadata has beyond what set takes, because that is
// many times as much.
func trim(object any) (any, error) {
	pod, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Labels: jobLabels(pod.Labels),
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	if hash, ok := pod.Annotations[mirror]; ok {
		kept.Annotations = map[string]string{mirror: hash}
	}
	return &metav1.PartialObjectMetadata{TypeMeta: pod.TypeMeta, ObjectMeta: kept}, nil
}

// set takes a pod that came or changed.
func (s *Source) set(object any) {
	meta, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.pods[string(meta.UID)]
	if r == nil {
		r = &record{}
		s.pods[string(meta.UID)] = r
		s.names[types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}] = r
	}
	if r.isGone = false; r.take(meta) {
		s.queue.Add(meta.UID)
	}
	if r.hash != "" {
		s.pods[r.hash] = r
	}
}

// take takes the metadata of a pod, and tells whether its workload is to be
// found anew. What is known of it stays until then.
func (r *record) take(meta *metav1.PartialObjectMetadata) bool {
	controller := metav1.GetControllerOfNoCopy(meta)
	labelled := labelledWorkload(meta.Namespace, meta.Labels)
	if r.pod != nil && uidOf(controller) == uidOf(r.controller) && labelled == r.labelled {
		return false
	}
	r.hash, r.controller, r.labelled = meta.Annotations[mirror], controller, labelled
	if r.pod != nil && controller != nil {
		return true
	}
	r.pod = &attribution.Pod{UID: string(meta.UID), Namespace: meta.Namespace, Name: meta.Name}
	r.pod.Workload = firstWorkload(r)
	return controller != nil
}

func uidOf(controller *metav1.OwnerReference) types.UID {
	if controller == nil {
		return ""
	}
	return controller.UID
}

// remove takes that a pod was deleted.
func (s *Source) remove(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	meta, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.pods[string(meta.UID)]; r != nil {
		r.isGone = true
		s.queue.AddAfter(meta.UID, forgetAfter)
	}
}

// forget drops a pod and the owners that no other pod has. It is called with
// the lock held.
func (s *Source) forget(r *record) {
	delete(s.pods, r.pod.UID)
	if s.pods[r.hash] == r {
		delete(s.pods, r.hash)
	}
	name := types.NamespacedName{Namespace: r.pod.Namespace, Name: r.pod.Name}
	if s.names[name] == r { // not a newer pod of the same name
		delete(s.names, name)
	}
	s.hold(r, nil)
}

// hold makes a pod hold the owners of a chain, and no others. It is called with
// the lock held.
func (s *Source) hold(r *record, chain []types.UID) {
	for _, uid := range chain {
		s.owners[uid].pods++
	}
	for _, uid := range r.chain {
		if o := s.owners[uid]; o.pods == 1 {
			delete(s.owners, uid)
		} else {
			o.pods--
		}
	}
	r.chain = slices.Clone(chain)
}
