package registration

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owners refers to the ClusterRole that is deleted with us.
func (r *Registration) owners(ctx context.Context) ([]metav1.OwnerReference, error) {
	if r.o.OwnerClusterRole == "" {
		return nil, nil
	}
	kind := rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(kind)
	if err := r.o.Client.Get(ctx, client.ObjectKey{Name: r.o.OwnerClusterRole}, role); err != nil {
		return nil, fmt.Errorf("get ClusterRole %s, which is to own the webhook configurations: %w", r.o.OwnerClusterRole, err)
	}
	return []metav1.OwnerReference{reference(kind, role)}, nil
}

func reference(kind schema.GroupVersionKind, owner metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID()}
}

// hasOwner says whether an object is owned by owner. One of that name and another
// UID is an earlier one, which is no more.
func hasOwner(owners []metav1.OwnerReference, owner metav1.OwnerReference) bool {
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
}
