package selection

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy"
)

// whyNot says why an interface gets no address of a pool; "" if it may.
func (s *selector) whyNot(o *offer, at *Interface, version int64, exact netip.Prefix) string {
	if !s.isOn(version) {
		return fmt.Sprintf("of IPv%d, which %s has off (enableIPv%d: false)", version, policy.ConfigMapKey, version)
	}
	if !o.found {
		return s.whyNone(o.name)
	}
	p := &o.pool
	switch {
	case p.Version() != version:
		return fmt.Sprintf("of IPv%d (%s), and named for IPv%d", p.Version(), p.Subnet, version)
	case p.Deleting:
		return "being deleted"
	case p.Disabled:
		return "disabled"
	}
	for _, ask := range []func() string{
		func() string { return s.closed(p.Name) },
		func() string { return s.otherNode(p) },
		func() string { return s.otherNamespace(p) },
		func() string { return s.otherPods(p) },
		func() string { return otherNetwork(p, at) },
		func() string { return s.otherParent(p, at) },
		func() string { return s.noAddress(p, exact) },
	} {
		if why := ask(); why != "" {
			return why
		}
	}
	return ""
}

// whyNone says why there is no pool of a name.
func (s *selector) whyNone(name string) string {
	if why := s.closed(name); why != "" {
		return why
	}
	if isPattern(name) {
		return "no pool of this family has a name that it matches"
	}
	const few = 2
	var names []string
	for _, p := range s.catalog.Pools() {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "no pool of this name, and no other"
	}
	nearest := policy.Nearest(name, names)
	return "no pool of this name: did you mean " + strings.Join(nearest[:min(few, len(nearest))], " or ") + "?"
}

func (s *selector) closed(pool string) string {
	if s.facts.Closed == nil {
		return ""
	}
	return s.facts.Closed(pool)
}

func (s *selector) otherNode(p *policy.Pool) string {
	a, node := &p.Affinity, &s.facts.Node
	switch {
	case node.Name == "":
		return ""
	case len(a.NodeNames) > 0:
		return notAmong("", node.Name, "nodeName", a.NodeNames)
	case a.Nodes == nil:
		return ""
	}
	return s.selects("nodeAffinity", a.Nodes, node.Name, node.Labels)
}

func (s *selector) otherNamespace(p *policy.Pool) string {
	a, name := &p.Affinity, s.facts.Pod.Namespace
	switch {
	case len(a.NamespaceNames) > 0:
		return notAmong("namespace ", name, "namespaceName", a.NamespaceNames)
	case a.Namespaces == nil:
		return ""
	}
	return s.selects("namespaceAffinity", a.Namespaces, "namespace "+name, s.facts.Namespace.Labels)
}

// selects holds a selector against labels that may not be known.
func (s *selector) selects(field string, selector labels.Selector, what string, of map[string]string) string {
	if of == nil {
		s.warn("%s of pools is not considered: the labels of %s are not known", field, what)
		return ""
	}
	if selector.Matches(labels.Set(of)) {
		return ""
	}
	return fmt.Sprintf("its %s %s does not select %s", field, selector, what)
}

func (s *selector) otherPods(p *policy.Pool) string {
	if p.Owner != nil && !slices.ContainsFunc(s.owners, func(a policy.Application) bool { return isSame(a, *p.Owner) }) {
		return "the own pool of " + p.Owner.String()
	}
	if p.Affinity.Pods == nil || p.Affinity.Pods.Matches(labels.Set(s.facts.Pod.Labels)) {
		return ""
	}
	return fmt.Sprintf("its podAffinity %s does not select the pod", p.Affinity.Pods)
}

// isSame says whether two are one application, or one that was made again under
// its name.
func isSame(a, b policy.Application) bool {
	a.UID, b.UID = "", ""
	return a == b
}

// otherNetwork holds a pool's networks against that of an interface. A name
// without a namespace is that of a network of any namespace.
func otherNetwork(p *policy.Pool, at *Interface) string {
	names := p.Affinity.Networks
	switch {
	case len(names) == 0 || at.Network.Name != "" && (slices.Contains(names, at.Network.String()) || slices.Contains(names, at.Network.Name)):
		return ""
	case at.Network.Name == "":
		return fmt.Sprintf("%s is on the cluster's network, and multusName is [%s]", at.Name, strings.Join(names, " "))
	}
	return notAmong("network ", at.Network.String(), "multusName", names)
}

// notAmong says that a name is not in a list; "" if it is. what may stand before it.
func notAmong(what, name, field string, list []string) string {
	if slices.Contains(list, name) {
		return ""
	}
	return fmt.Sprintf("%s%s is not in %s [%s]", what, name, field, strings.Join(list, " "))
}

// otherParent holds a pool's subnet against the addresses of what the network
// stands on, where it wants that.
func (s *selector) otherParent(p *policy.Pool, at *Interface) string {
	switch {
	case !at.Pools.MatchMasterSubnet:
		return ""
	case at.Parent == nil:
		s.warn("matchMasterSubnet of network %s is not considered: the addresses of its parent are not known", at.Network)
		return ""
	}
	var have []string
	for _, a := range at.Parent.Addresses {
		if p.Subnet.Contains(a.Addr()) {
			return ""
		}
		have = append(have, a.String())
	}
	if len(have) == 0 {
		have = []string{"no address"}
	}
	return fmt.Sprintf("its subnet %s is not that of %s, which matchMasterSubnet wants: that has %s", p.Subnet, at.Parent.Name, strings.Join(have, ", "))
}

// noAddress says that a pool has nothing to give to anybody, or not the address
// that is asked for.
func (s *selector) noAddress(p *policy.Pool, exact netip.Prefix) string {
	reserved := s.catalog.Reserved(p.Version())
	if !exact.IsValid() {
		for _, r := range p.Addresses.Ranges() {
			if !reserved.ContainsRange(r) {
				return ""
			}
		}
		if len(p.Addresses.Ranges()) == 0 {
			return "it has no addresses: ips without excludeIPs is empty"
		}
		return "all its addresses are reserved by SpiderReservedIPs"
	}
	addr := exact.Addr()
	switch {
	case !p.Addresses.Contains(addr):
		return fmt.Sprintf("it has no %s, which annotation %s asks for", addr, cniv1.AnnotationNetworks)
	case reserved.Contains(addr):
		return fmt.Sprintf("%s, which annotation %s asks for, is reserved by a SpiderReservedIP", addr, cniv1.AnnotationNetworks)
	case exact.Bits() != addr.BitLen() && exact.Bits() != p.Subnet.Bits():
		return fmt.Sprintf("annotation %s asks for %s, and its subnet is %s", cniv1.AnnotationNetworks, exact, p.Subnet)
	}
	return ""
}
