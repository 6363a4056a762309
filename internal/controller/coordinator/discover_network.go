package coordinator

import (
	"fmt"
	"slices"
)

// calico takes the IPPools that serve pods.
func (s *search) calico(f facts) {
	a := f.calico
	if a.err != nil {
		s.miss(a.without())
		s.isMissing = true
		return
	}
	isAny := false
	for _, pool := range a.value {
		if pool.serves() {
			isAny = s.add("calico's IPPool "+pool.name, []string{pool.cidr}) || isAny
		}
	}
	if !isAny {
		s.miss(fmt.Sprintf("%s (none of %d serves pods)", a.source, len(a.value)))
		s.isMissing = true
	}
}

// serves says whether pods get addresses of a pool.
func (p calicoPool) serves() bool {
	return !p.isDisabled && (len(p.uses) == 0 || slices.Contains(p.uses, "Workload"))
}

func hasServing(pools []calicoPool) bool { return slices.ContainsFunc(pools, calicoPool.serves) }

// cilium takes what cilium's way of giving addresses says, key ipam of its
// ConfigMap.
func (s *search) cilium(f facts) {
	a := f.cilium
	if a.err != nil {
		s.miss(a.without())
		s.isMissing = true
		return
	}
	var isFound bool
	switch mode := a.value["ipam"]; mode {
	case "", "cluster-pool", "cluster-pool-v2beta":
		isFound = s.ciliumKeys(f, "cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr")
	case "multi-pool":
		isFound = s.ciliumPools(f)
	case "kubernetes":
		s.clusterPods(f)
		return
	default:
		// The cloud or something else gives addresses. Cilium knows of those that it need not translate.
		isFound = s.ciliumKeys(f, "ipv4-native-routing-cidr", "ipv6-native-routing-cidr")
	}
	s.isMissing = s.isMissing || !isFound
}

func (s *search) ciliumKeys(f facts, keys ...string) bool {
	isAny := false
	for _, key := range keys {
		isAny = s.add(f.cilium.source+" "+key, splitList(f.cilium.value[key])) || isAny
	}
	if !isAny {
		s.miss(fmt.Sprintf("%s (ipam is %q, and none of the keys %q has a CIDR)", f.cilium.source, f.cilium.value["ipam"], keys))
	}
	return isAny
}

func (s *search) ciliumPools(f facts) bool {
	a := f.ciliumPools
	if a.err != nil {
		s.miss(a.without())
		return false
	}
	isAny := false
	for _, pool := range a.value {
		isAny = s.add("CiliumPodIPPool "+pool.name, pool.cidrs) || isAny
	}
	if !isAny {
		s.miss(fmt.Sprintf("%s (none of %d has a CIDR)", a.source, len(a.value)))
	}
	return isAny
}
