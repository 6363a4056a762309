package overview

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodEvent is what an Event says of a pod.
type PodEvent struct {
	Message string    `json:"message"`
	Last    time.Time `json:"last,omitzero"` // when it happened last
	Count   int64     `json:"count"`         // how often, 1 or more
}

// LastEvent reads the last Event of a reason about a pod, by its UID; nil if
// there is none. It needs to list events in the pod's namespace.
func (r *Reader) LastEvent(ctx context.Context, pod metav1.ObjectMeta, reason string) (*PodEvent, error) {
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	found, err := r.objects.Resource(events).Namespace(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(pod.UID) + ",reason=" + reason,
	})
	if err != nil {
		return nil, r.readError("list", events, pod.Namespace, err)
	}
	var last *PodEvent
	for i := range found.Items {
		object := found.Items[i].Object
		uid, _, _ := unstructured.NestedString(object, "involvedObject", "uid")
		why, _, _ := unstructured.NestedString(object, "reason")
		if uid != string(pod.UID) || why != reason {
			continue
		}
		if e := podEvent(object); last == nil || !e.Last.Before(last.Last) {
			last = &e
		}
	}
	return last, nil
}

// podEvent reads an Event of either kind of API: one that counts itself, or one
// of a series.
func podEvent(object map[string]any) PodEvent {
	var e PodEvent
	e.Message, _, _ = unstructured.NestedString(object, "message")
	once, _, _ := unstructured.NestedInt64(object, "count")
	series, _, _ := unstructured.NestedInt64(object, "series", "count")
	e.Count = cmp.Or(series, once, 1)
	for _, fields := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"firstTimestamp"}, {"metadata", "creationTimestamp"}} {
		text, _, _ := unstructured.NestedString(object, fields...)
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil && at.After(e.Last) {
			e.Last = at
		}
	}
	return e
}
