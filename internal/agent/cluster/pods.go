package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mirrored is the annotation of the pod that stands in the API server for a
// static one. It holds the UID that the kubelet has for that, a hash.
const mirrored = "kubernetes.io/config.mirror"

// trimPod leaves a pod what networks and addresses depend on: labels,
// annotations and owners.
func trimPod(o metav1.Object) {
	trimMeta(o)
	pod, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	kept := metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Labels: pod.Labels, Annotations: pod.Annotations, DeletionTimestamp: pod.DeletionTimestamp,
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	for _, key := range written() {
		if text, ok := kept.Annotations[key]; ok {
			kept.Annotations[key] = Digest(text)
		}
	}
	pod.ObjectMeta = kept
}

// written are annotations that the agent itself writes, and which are several times
// as much as all others. Whether they are what it would write is worth knowing.
func written() []string {
	return []string{"k8s.v1.cni.cncf.io/network-status", "railhead.io/attachment"}
}

// digested begins a digest.
const digested = "sha256:"

// Digest is what is kept of an annotation that the agent itself writes. That of a
// digest is the same: a pod may be trimmed twice, and once more when it comes from
// the disk.
func Digest(text string) string {
	if strings.HasPrefix(text, digested) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return digested + hex.EncodeToString(sum[:8])
}

// Pod returns the metadata of a pod: of memory where it is there with this UID,
// else from the API server, once. A static pod's UID is the one that the kubelet
// has for it; an empty one means any, of which what an earlier run was told proves
// nothing: there may be another of the name by now. Labels, annotations, the
// controller and when it is to end are there, and nothing else beside its names; the
// annotations of what was attached, k8s.v1.cni.cncf.io/network-status and railhead.io/attachment,
// are there by their [Digest] alone.
//
// Where there is no such pod, or another by its name, the error says so and is
// apierrors.IsNotFound.
func (c *Cache) Pod(ctx context.Context, namespace, name, uid string) (*metav1.PartialObjectMetadata, error) {
	if pod, ok := c.pods.get(namespace, name).(*metav1.PartialObjectMetadata); ok && isPod(pod, uid) && (uid != "" || c.pods.current()) {
		return pod, nil
	}
	pod, err := c.client.get(ctx, podResource(), namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &absence{fmt.Sprintf("pod %s is gone: the API server has none of this name", title(namespace, name)), err}
	case err != nil:
		return nil, fmt.Errorf("pod %s is not known here, and the API server does not tell of it: %w", title(namespace, name), err)
	case !isPod(pod, uid):
		return nil, &absence{
			fmt.Sprintf("pod %s with UID %s is gone: the API server has another by its name, with UID %s", title(namespace, name), uid, pod.UID),
			apierrors.NewNotFound(podResource().GroupResource(), name),
		}
	}
	trimPod(pod)
	return pod, nil
}

// isPod tells whether a pod is the one with a UID.
func isPod(pod *metav1.PartialObjectMetadata, uid string) bool {
	return uid == "" || uid == string(pod.UID) || uid == pod.Annotations[mirrored]
}

// PatchPod sends a JSON merge patch of a pod, once. The error is the API's:
// apierrors.IsNotFound where there is no such pod, IsConflict where the patch
// names a UID or a version of another.
func (c *Cache) PatchPod(ctx context.Context, namespace, name string, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	_, err := c.client.writer.Resource(podResource()).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch of pod %s: %w", title(namespace, name), err)
	}
	return nil
}

// arrived has what a pod needs read before it is asked for.
func (c *Cache) arrived(before, now metav1.Object) {
	if before == nil || before.GetUID() != now.GetUID() {
		c.queue.Add(errand{pod: keyOf(now)})
	}
}

// left forgets what no pod of the node needs any more.
func (c *Cache) left(types.NamespacedName, metav1.Object) {
	namespaces, controllers := map[string]bool{}, map[types.UID]bool{}
	c.pods.each(func(pod metav1.Object) {
		namespaces[pod.GetNamespace()] = true
		if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
			controllers[controller.UID] = true
		}
	})
	c.namespaces.retain(namespaces)
	c.above.retain(controllers)
}
