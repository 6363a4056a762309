package coordinator

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"go4.org/netipx"

	"railhead/api/spiderpool/v2beta1"
)

// finding is what the facts come to.
type finding struct {
	network        string // calico, cilium, calico and cilium, cluster, or none
	pods, services []netip.Prefix
	reason         string // why not ready; "" if it is
	// wantsNodes says that another answer may come with the nodes.
	wantsNodes bool
}

// discover says which addresses pods and Services of the cluster's own network
// have. It is a pure function of the facts.
func discover(f facts) finding {
	var (
		result  finding
		reasons []string
		pods    search
	)
	networks := networksOf(f)
	result.network = strings.Join(networks, " and ")
	for _, network := range networks {
		switch network {
		case v2beta1.PodCIDRCalico:
			pods.calico(f)
		case v2beta1.PodCIDRCilium:
			pods.cilium(f)
		case v2beta1.PodCIDRCluster:
			pods.clusterPods(f)
		}
	}
	if !pods.isComplete() && result.network != v2beta1.PodCIDRNone {
		reasons = append(reasons, fmt.Sprintf("no CIDR of pods found (podCIDRType %s, network %s); looked at %s",
			f.podCIDRType, result.network, strings.Join(pods.tried, "; ")))
	}
	var services search
	services.clusterServices(f)
	isWritten := f.podCIDRType == v2beta1.PodCIDRNone && f.isByHand
	if !services.isComplete() && !isWritten {
		reasons = append(reasons, "no CIDR of Services found; looked at "+strings.Join(services.tried, "; "))
	}
	result.pods, result.services = pods.prefixes(), services.prefixes()
	result.wantsNodes = pods.wantsNodes || services.wantsNodes
	if len(reasons) > 0 {
		result.reason = strings.Join(reasons, ". ") + ". " + byHand
	}
	return result
}

// byHand is what always helps.
const byHand = "Let one of these say it, or write it by hand: podCIDRType: none, and the CIDRs of pods and Services in hijackCIDR"

// networksOf says which network the cluster has: what the spec says, what the
// CNI configuration says, or what the API has objects of. Where those of two
// networks are there, as after a migration, both count: a CIDR too many is
// reached over the node and works, one too few does not.
func networksOf(f facts) []string {
	if f.podCIDRType != v2beta1.PodCIDRAuto {
		return []string{f.podCIDRType}
	}
	if f.cniConfig.err == nil {
		switch kind := f.cniConfig.value; kind {
		case v2beta1.PodCIDRCalico, v2beta1.PodCIDRCilium:
			return []string{kind}
		}
		return []string{v2beta1.PodCIDRCluster}
	}
	var networks []string
	if f.calico.err == nil && hasServing(f.calico.value) {
		networks = append(networks, v2beta1.PodCIDRCalico)
	}
	if f.cilium.err == nil {
		networks = append(networks, v2beta1.PodCIDRCilium)
	}
	if len(networks) == 0 {
		networks = append(networks, v2beta1.PodCIDRCluster)
	}
	return networks
}

// search collects CIDRs from sources, and what those said that had none.
type search struct {
	set        netipx.IPSetBuilder
	isFound    bool
	isMissing  bool // one of several networks has not said anything
	wantsNodes bool
	tried      []string
}

// isComplete says whether every network that was asked had something.
func (s *search) isComplete() bool { return s.isFound && !s.isMissing }

// add takes CIDRs of a source. It says whether there were any, and notes why
// not.
func (s *search) add(source string, cidrs []string) bool {
	isAny := false
	for _, text := range cidrs {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			s.tried = append(s.tried, fmt.Sprintf("%s (%q is no CIDR)", source, text))
			continue
		}
		s.set.AddPrefix(prefix.Masked())
		isAny = true
	}
	s.isFound = s.isFound || isAny
	return isAny
}

// miss notes why a source had nothing.
func (s *search) miss(why string) { s.tried = append(s.tried, why) }

// prefixes are what was found, merged and in order.
func (s *search) prefixes() []netip.Prefix {
	set, err := s.set.IPSet()
	if err != nil { // parsed prefixes make valid ranges
		return nil
	}
	return set.Prefixes()
}

// splitList takes apart a list of CIDRs in one text.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}

// isAsked says whether a source was asked at all.
func isAsked(err error) bool { return !errors.Is(err, errNotAsked) }
