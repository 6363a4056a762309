package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/policy"
)

const (
	// component is who makes the Events.
	component = "railhead-agent"

	// MessageMost is how many bytes of text an Event may have.
	MessageMost = 1024
)

// Event makes an Event of type Warning about a pod, of which its namespace, name
// and UID are needed. A text that is too long for one is cut.
func (c *Cache) Event(ctx context.Context, pod *metav1.PartialObjectMetadata, reason, text string) error {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	now := metav1.NewTime(time.Now())
	made := &event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, Name: eventName(pod.Name, now.Time)},
		InvolvedObject: objectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)},
		Reason:         reason, Message: policy.Beginning(text, MessageMost), Type: "Warning", Count: 1,
		Source:         eventSource{Component: component, Host: c.node},
		FirstTimestamp: now, LastTimestamp: now,
	}
	if err := c.client.events.Post().Namespace(pod.Namespace).Resource("events").Body(made).Do(ctx).Error(); err != nil {
		return fmt.Errorf("event about pod %s: %w", title(pod.Namespace, pod.Name), err)
	}
	return nil
}

// eventName is a name of an Event that no other about the pod has.
func eventName(pod string, at time.Time) string {
	const most = 230 // of the 253 that a name may have
	if len(pod) > most {
		pod = strings.TrimRight(pod[:most], "-.")
	}
	return fmt.Sprintf("%s.%x", pod, at.UnixNano())
}
