package coordinator

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kinds of others, each with its versions, the one to use first. Clusters may
// lack all of them.

func serviceCIDRKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "networking.k8s.io", Version: "v1", Kind: "ServiceCIDR"},
		{Group: "networking.k8s.io", Version: "v1beta1", Kind: "ServiceCIDR"},
	}
}

// calicoKinds has the CRD first: the other is served by a server of calico's
// own, which clusters can have or not.
func calicoKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "crd.projectcalico.org", Version: "v1", Kind: "IPPool"},
		{Group: "projectcalico.org", Version: "v3", Kind: "IPPool"},
	}
}

func ciliumKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "cilium.io", Version: "v2", Kind: "CiliumPodIPPool"},
		{Group: "cilium.io", Version: "v2alpha1", Kind: "CiliumPodIPPool"},
	}
}
