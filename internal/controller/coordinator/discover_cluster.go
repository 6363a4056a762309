package coordinator

import (
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/yaml"
)

// clusterPods looks up what the cluster itself gives pods: the first source
// that says anything, from what was configured to what became of it.
func (s *search) clusterPods(f facts) {
	found := s.kubeadm(f, func(n networking) string { return n.PodSubnet }, "podSubnet") ||
		s.managers(f, "cluster-cidr") ||
		s.nodeArgs(f, "cluster-cidr") ||
		s.nodeCIDRs(f)
	s.isMissing = s.isMissing || !found
}

// clusterServices looks up the addresses of Services. Where the cluster has
// ServiceCIDRs they are all that there are, whatever was configured once.
func (s *search) clusterServices(f facts) {
	found := s.serviceCIDRs(f) ||
		s.kubeadm(f, func(n networking) string { return n.ServiceSubnet }, "serviceSubnet") ||
		s.managers(f, "service-cluster-ip-range") ||
		s.nodeArgs(f, "service-cidr") ||
		s.nodeDefaults(f)
	s.isMissing = s.isMissing || !found
}

func (s *search) serviceCIDRs(f facts) bool {
	a := f.serviceCIDRs
	if a.err == nil && s.add(a.source, a.value) {
		return true
	}
	s.miss(a.without() + none(a.err))
	return false
}

// networking is what is read of kubeadm's ClusterConfiguration.
type networking struct {
	PodSubnet     string `json:"podSubnet"`
	ServiceSubnet string `json:"serviceSubnet"`
}

func (s *search) kubeadm(f facts, of func(networking) string, key string) bool {
	a := f.kubeadm
	if a.err != nil {
		s.miss(a.without())
		return false
	}
	var configuration struct {
		Networking networking `json:"networking"`
	}
	if err := yaml.Unmarshal([]byte(a.value), &configuration); err != nil {
		s.miss(fmt.Sprintf("%s (ClusterConfiguration is no YAML: %v)", a.source, err))
		return false
	}
	cidrs := splitList(of(configuration.Networking))
	if len(cidrs) == 0 {
		s.miss(fmt.Sprintf("%s (networking.%s is empty)", a.source, key))
	}
	return s.add(a.source, cidrs)
}

func (s *search) managers(f facts, flag string) bool {
	a := f.managers
	if a.err != nil {
		s.miss(a.without())
		return false
	}
	for _, manager := range a.value {
		if values := flagValues(manager.args, flag); s.add("pod "+manager.name, values) {
			return true
		}
	}
	s.miss(fmt.Sprintf("%s (none of %d has --%s)", a.source, len(a.value), flag))
	return false
}

// nodeArgs reads flags of k3s and RKE2, which servers write on their own nodes.
func (s *search) nodeArgs(f facts, flag string) bool {
	if !s.haveNodes(f) {
		return false
	}
	servers := 0
	for _, n := range f.nodes.value {
		if !isServer(n) {
			continue
		}
		servers++
		if s.add("node "+n.name, flagValues(n.args, flag)) {
			return true
		}
	}
	if servers > 0 {
		s.miss(fmt.Sprintf("servers of k3s or RKE2 (none of %d has --%s)", servers, flag))
	}
	return false
}

// nodeCIDRs merges what nodes have been given.
func (s *search) nodeCIDRs(f facts) bool {
	if f.nodes.err != nil {
		return false
	}
	isAny := false
	for _, n := range f.nodes.value {
		isAny = s.add("node "+n.name, n.podCIDRs) || isAny
	}
	if !isAny {
		s.miss(fmt.Sprintf("%s (none of %d has spec.podCIDRs, as where the cloud's network gives pods their addresses)", f.nodes.source, len(f.nodes.value)))
	}
	return isAny
}

// What k3s and RKE2 take for Services where no flag says otherwise, by family
// of the pods.
const (
	defaultServices4 = "10.43.0.0/16"
	defaultServices6 = "fd00:43::/112"
)

// nodeDefaults is for servers of k3s and RKE2 without the flag: it is in their
// annotation whenever it was given. Servers of two families must be given it.
func (s *search) nodeDefaults(f facts) bool {
	if f.nodes.err != nil || !slices.ContainsFunc(f.nodes.value, isServer) {
		return false
	}
	has4, has6 := false, false
	for _, n := range f.nodes.value {
		for _, text := range n.podCIDRs {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				has4, has6 = has4 || prefix.Addr().Is4(), has6 || prefix.Addr().Is6()
			}
		}
	}
	switch {
	case has4 && !has6:
		return s.add("the default of k3s and RKE2", []string{defaultServices4})
	case has6 && !has4:
		return s.add("the default of k3s and RKE2", []string{defaultServices6})
	}
	return false
}

// haveNodes says whether nodes are known, and else what is wanted of them.
func (s *search) haveNodes(f facts) bool {
	if !isAsked(f.nodes.err) {
		s.wantsNodes = true
		return false
	}
	if f.nodes.err != nil {
		s.miss(f.nodes.without())
		return false
	}
	return true
}

// isServer says whether a node runs a server of k3s or RKE2.
func isServer(n node) bool { return len(n.args) > 0 && n.args[0] == "server" }

// none is said of a source that is there and empty.
func none(err error) string {
	if err != nil {
		return ""
	}
	return " (none)"
}
