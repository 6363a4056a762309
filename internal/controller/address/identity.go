package address

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/internal/ipam/selection"
	"railhead/internal/policy"
)

// identities tells which pods that keep their addresses over their lives are
// gone for good. What it cannot tell is there.
type identities struct {
	cache  client.Reader // StatefulSets
	live   client.Reader
	config func() policy.Config

	mu sync.Mutex
	// machines are the virtual machines of the last look; nil: nobody knows which
	// there are, as where KubeVirt is not.
	machines map[types.NamespacedName]struct{}
}

// kubeVirt is what a virtual machine is called in the API, and while it runs.
func kubeVirt() []schema.GroupVersionKind {
	version := schema.GroupVersion{Group: "kubevirt.io", Version: "v1"}
	return []schema.GroupVersionKind{version.WithKind("VirtualMachine"), version.WithKind("VirtualMachineInstance")}
}

// isKept says whether the configuration has pods of this kind keep their addresses.
func (x *identities) isKept(id selection.Identity) bool {
	config := x.config()
	switch id.Kind {
	case selection.KindStatefulSet:
		return config.StatefulSets
	case selection.KindVirtualMachine:
		return config.KubeVirt
	}
	return true
}

// isAbsent says whether an identity seems to be gone, by what is at hand.
func (x *identities) isAbsent(ctx context.Context, id selection.Identity) (bool, error) {
	switch {
	case !x.isKept(id):
		return true, nil
	case id.Kind == selection.KindStatefulSet:
		return isOrdinalAbsent(ctx, x.cache, id)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.machines[types.NamespacedName{Namespace: id.Namespace, Name: id.Name}]
	return x.machines != nil && !ok, nil
}

// isGone says whether an identity is gone, by what the API server says now.
func (x *identities) isGone(ctx context.Context, id selection.Identity) (bool, error) {
	switch {
	case !x.isKept(id):
		return true, nil
	case id.Kind == selection.KindStatefulSet:
		return isOrdinalAbsent(ctx, x.live, id)
	}
	for _, kind := range kubeVirt() {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		err := x.live.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, object)
		if !apierrors.IsNotFound(err) || isNoAnswer(err) {
			return false, ignoreUnknown(err)
		}
	}
	return true, nil
}

// isOrdinalAbsent says whether a StatefulSet is not there, or has no pod of that
// ordinal. One that was made again under its name is the same.
func isOrdinalAbsent(ctx context.Context, from client.Reader, id selection.Identity) (bool, error) {
	set := &appsv1.StatefulSet{}
	err := from.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, set)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	start, replicas := int64(0), int64(1)
	if set.Spec.Ordinals != nil {
		start = int64(set.Spec.Ordinals.Start)
	}
	if set.Spec.Replicas != nil {
		replicas = int64(*set.Spec.Replicas)
	}
	return id.Ordinal < start || id.Ordinal >= start+replicas, nil
}

// lookAtMachines lists the virtual machines. Where the API server has none of
// their kind, or lets nobody read them, none is gone.
func (x *identities) lookAtMachines(ctx context.Context) error {
	found, err := x.listMachines(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.machines = found
	return err
}

func (x *identities) listMachines(ctx context.Context) (map[types.NamespacedName]struct{}, error) {
	found := map[types.NamespacedName]struct{}{}
	const page = 500
	next := ""
	for {
		list := &metav1.PartialObjectMetadataList{}
		kind := kubeVirt()[0]
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := x.live.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			return nil, ignoreUnknown(err)
		}
		for i := range list.Items {
			found[client.ObjectKeyFromObject(&list.Items[i])] = struct{}{}
		}
		if next = list.Continue; next == "" {
			return found, nil
		}
	}
}

// ignoreUnknown takes a kind that is not there, or not for us to read, for an answer.
func ignoreUnknown(err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// isNoAnswer says whether it is the kind that is not there, and not the object.
func isNoAnswer(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
