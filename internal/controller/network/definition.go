package network

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
)

// annotationKeys lists the annotations of a NetworkAttachmentDefinition that are
// ours: those that a SpiderMultusConfig has no more are removed, and what others
// wrote beside them stays.
const annotationKeys = "railhead.io/annotations"

// make brings a NetworkAttachmentDefinition to what it must be. The owner of one
// that is not for us to change is returned, and no error.
func (r *Reconciler) make(ctx context.Context, config *v2beta1.SpiderMultusConfig, want *cniv1.NetworkAttachmentDefinition) (owner string, err error) {
	have := &cniv1.NetworkAttachmentDefinition{}
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return "", r.create(ctx, config, want)
	}
	if err != nil {
		return "", err
	}
	current := metav1.GetControllerOf(have)
	if current != nil && !replaces(config, *current) {
		return fmt.Sprintf("%s %s", current.Kind, current.Name), nil
	}
	before := have.DeepCopy()
	changed := adjust(have, want, config)
	if len(changed) == 0 {
		return "", nil
	}
	if err := r.Client.Patch(ctx, have, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return "", fmt.Errorf("NetworkAttachmentDefinition %s/%s: %w", want.Namespace, want.Name, err)
	}
	reason := "Updated"
	if current == nil {
		reason = "TakenOver"
	}
	r.Recorder.Eventf(config, have, corev1.EventTypeNormal, reason, "Update", "NetworkAttachmentDefinition %s: changed %s", want.Name, strings.Join(changed, ", "))
	return "", nil
}

func (r *Reconciler) create(ctx context.Context, config *v2beta1.SpiderMultusConfig, want *cniv1.NetworkAttachmentDefinition) error {
	adjust(want, want.DeepCopy(), config)
	if err := r.Client.Create(ctx, want); err != nil {
		return fmt.Errorf("NetworkAttachmentDefinition %s/%s: %w", want.Namespace, want.Name, err)
	}
	r.Recorder.Eventf(config, want, corev1.EventTypeNormal, "Created", "Create", "created NetworkAttachmentDefinition %s", want.Name)
	return nil
}

// adjust makes have what it must be, and names what it changed.
func adjust(have, want *cniv1.NetworkAttachmentDefinition, config *v2beta1.SpiderMultusConfig) (changed []string) {
	if have.Spec.Config != want.Spec.Config {
		have.Spec.Config = want.Spec.Config
		changed = append(changed, "spec.config")
	}
	if annotations := merged(have.Annotations, want.Annotations); !maps.Equal(annotations, have.Annotations) {
		have.Annotations = annotations
		changed = append(changed, "metadata.annotations")
	}
	if owners := ownedBy(have.OwnerReferences, config); !slices.EqualFunc(owners, have.OwnerReferences, sameOwner) {
		have.OwnerReferences = owners
		changed = append(changed, "metadata.ownerReferences")
	}
	return changed
}

// merged are our annotations as they must be, with those of others.
func merged(have, want map[string]string) map[string]string {
	all := maps.Clone(have)
	if all == nil {
		all = map[string]string{}
	}
	for key := range strings.SplitSeq(have[annotationKeys], ",") {
		delete(all, key)
	}
	delete(all, annotationKeys)
	maps.Copy(all, want)
	if len(want) > 0 {
		all[annotationKeys] = strings.Join(slices.Sorted(maps.Keys(want)), ",")
	}
	return all
}

// reference is that of the SpiderMultusConfig as the one controller.
func reference(config *v2beta1.SpiderMultusConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(config, v2beta1.GroupVersion.WithKind("SpiderMultusConfig"))
}

func isConfig(owner metav1.OwnerReference) bool {
	return owner.Kind == "SpiderMultusConfig" && strings.HasPrefix(owner.APIVersion, v2beta1.GroupVersion.Group+"/")
}

// replaces says whether an owner is this SpiderMultusConfig, or one of its name
// that is gone.
func replaces(config *v2beta1.SpiderMultusConfig, owner metav1.OwnerReference) bool {
	return owner.UID == config.UID || isConfig(owner) && owner.Name == config.Name
}

// ownedBy are the owners with ours in its place, or at the end.
func ownedBy(owners []metav1.OwnerReference, config *v2beta1.SpiderMultusConfig) []metav1.OwnerReference {
	own := reference(config)
	for i, owner := range owners {
		if replaces(config, owner) {
			owners = slices.Clone(owners)
			owners[i] = own
			return owners
		}
	}
	return append(slices.Clone(owners), own)
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		isSet(a.Controller) == isSet(b.Controller) && isSet(a.BlockOwnerDeletion) == isSet(b.BlockOwnerDeletion)
}

func isSet(flag *bool) bool { return flag != nil && *flag }

// removeOthers deletes what was made of the SpiderMultusConfig under another
// name. It cannot be renamed, but for while no webhook was.
func (r *Reconciler) removeOthers(ctx context.Context, config *v2beta1.SpiderMultusConfig, name string) error {
	if config.Status.NetworkAttachmentDefinition == "" || config.Status.NetworkAttachmentDefinition == name {
		return nil
	}
	old := &cniv1.NetworkAttachmentDefinition{}
	key := client.ObjectKey{Namespace: config.Namespace, Name: config.Status.NetworkAttachmentDefinition}
	if err := r.Client.Get(ctx, key, old); err != nil {
		return client.IgnoreNotFound(err)
	}
	if owner := metav1.GetControllerOf(old); owner == nil || owner.UID != config.UID {
		return nil
	}
	exactly := client.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion}
	if err := r.Client.Delete(ctx, old, exactly); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("NetworkAttachmentDefinition %s/%s: %w", old.Namespace, old.Name, err)
	}
	r.Recorder.Eventf(config, old, corev1.EventTypeNormal, "Deleted", "Delete", "deleted NetworkAttachmentDefinition %s: the network is %s now", old.Name, name)
	return nil
}
