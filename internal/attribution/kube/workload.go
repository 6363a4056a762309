package kube

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/attribution"
)

// ownersMost is how many owners above each other are followed. Three or four
// are usual: Pod, Job, JobSet, TrainJob.
const ownersMost = 16

// work finds workloads and forgets pods until the queue shuts down.
func (s *Source) work(ctx context.Context) {
	for {
		uid, isShutDown := s.queue.Get()
		if isShutDown {
			return
		}
		s.update(ctx, uid)
		s.queue.Done(uid)
	}
}

// update forgets a pod that is gone, and finds the workload of any other.
func (s *Source) update(ctx context.Context, uid types.UID) {
	s.mu.Lock()
	r := s.pods[string(uid)]
	if r != nil && r.isGone {
		s.forget(r)
	}
	if r == nil || r.isGone || r.controller == nil {
		s.mu.Unlock()
		s.queue.Forget(uid)
		return
	}
	pod, controller := r.pod, r.controller
	s.mu.Unlock()

	w, err := s.walk(ctx, pod.Namespace, controller)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(r, controller, w)
	switch {
	case err != nil:
		s.log.Debug("the workload of a pod cannot be found now", "pod_namespace", pod.Namespace, "pod_name", pod.Name, "error", err)
		s.queue.AddRateLimited(uid)
	case !w.until.IsZero():
		s.queue.Forget(uid)
		s.queue.AddAfter(uid, time.Until(w.until))
	default:
		s.queue.Forget(uid)
	}
}

// walk is a way up from a pod over its owners.
type walk struct {
	top    *metav1.OwnerReference // the highest owner that is known
	global bool                   // the top is in no namespace
	reason string                 // why there may be a higher one; empty where there is none
	until  time.Time              // when that may be otherwise; zero where it stays
	chain  []types.UID            // owners that are known
}

// walk follows controller references up from the controller of a pod. It is
// called without the lock. The walk is valid with an error, which is a passing
// one.
func (s *Source) walk(ctx context.Context, namespace string, controller *metav1.OwnerReference) (walk, error) {
	w := walk{top: controller}
	for ref := controller; ref != nil; {
		switch {
		case slices.Contains(w.chain, ref.UID):
			w.reason = cyclic
			return w, nil
		case len(w.chain) == ownersMost:
			w.reason = tooDeep
			return w, nil
		}
		w.top, w.global = ref, false
		o, err := s.owner(ctx, namespace, ref)
		if err != nil {
			w.reason = unavailable
			return w, err
		}
		w.chain = append(w.chain, ref.UID)
		w.reason, w.until, w.global = o.reason, o.until, o.isGlobal
		ref = o.controller
	}
	return w, nil
}

// owner returns an owner from what is known, else from the API server.
func (s *Source) owner(ctx context.Context, namespace string, ref *metav1.OwnerReference) (*owner, error) {
	s.mu.RLock()
	known := s.owners[ref.UID]
	s.mu.RUnlock()
	if known != nil && (known.reason == "" || time.Now().Before(known.until)) {
		return known, nil
	}
	read, err := s.reader.read(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known = s.owners[ref.UID]; known != nil {
		read.pods = known.pods
	}
	s.owners[ref.UID] = read
	return read, nil
}

// settle gives a pod the workload that a walk from its controller came to. It
// is called with the lock held.
func (s *Source) settle(r *record, controller *metav1.OwnerReference, w walk) {
	s.hold(r, w.chain)
	found := workloadOf(r, w)
	before := r.pod.Workload
	isWorse := w.reason == unavailable && before.Reason != pending
	if r.controller != controller || isWorse || found == before {
		return
	}
	pod := *r.pod
	pod.Workload = found
	r.pod = &pod
}

// workloadOf returns what a walk came to, or what the pod's labels tell where
// that is above it.
func workloadOf(r *record, w walk) attribution.Workload {
	found := attribution.Workload{
		APIVersion: w.top.APIVersion, Kind: w.top.Kind, Namespace: r.pod.Namespace, Name: w.top.Name, Reason: w.reason,
	}
	if w.global {
		found.Namespace = ""
	}
	isSame := r.labelled.Name == found.Name && (r.labelled.Kind == found.Kind || r.labelled.Kind == "")
	if w.reason == "" || r.labelled.Name == "" || isSame {
		return found
	}
	labelled := r.labelled
	labelled.Reason = w.reason
	return labelled
}

// firstWorkload returns what is known of a pod's workload from the pod alone.
func firstWorkload(r *record) attribution.Workload {
	switch {
	case r.controller != nil:
		return workloadOf(r, walk{top: r.controller, reason: pending})
	case r.labelled.Name != "":
		return r.labelled
	}
	return attribution.Workload{APIVersion: "v1", Kind: "Pod", Namespace: r.pod.Namespace, Name: r.pod.Name}
}
