package injection

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/policy"
)

// merge returns a pod's list with the networks that are not in it yet behind what is.
func merge(listed []selection, networks []policy.Network, podNamespace string) []selection {
	there := map[types.NamespacedName]bool{}
	for _, s := range listed {
		there[s.network(podNamespace)] = true
	}
	list := slices.Clip(listed)
	for _, n := range networks {
		if !there[nadOf(n)] {
			list = append(list, selection{Name: n.NAD, Namespace: n.Namespace})
		}
	}
	return list
}

// needs counts how many of each resource the networks of a pod's list take. Only
// networks that are asked for by annotation count: of others, users ask for the
// resource themselves.
func needs(list []selection, networks []policy.Network, podNamespace string) map[string]int64 {
	resources := map[types.NamespacedName]string{}
	for _, n := range networks {
		resources[nadOf(n)] = n.Resource
	}
	counts := map[string]int64{}
	for _, s := range list {
		if resource := resources[s.network(podNamespace)]; resource != "" {
			counts[resource]++
		}
	}
	return counts
}

// network is the NetworkAttachmentDefinition that an element is about.
func (s selection) network(podNamespace string) types.NamespacedName {
	if s.Namespace == "" {
		return types.NamespacedName{Namespace: podNamespace, Name: s.Name}
	}
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

func nadOf(n policy.Network) types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.NAD}
}
