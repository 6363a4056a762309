package selection

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// source is who names pools for an interface, and which.
type source struct {
	from   string
	offers [2][]offer // by family
	clean  bool       // no default route
}

// offer is a pool that was named.
type offer struct {
	name  string // or the pattern that matches none
	pool  policy.Pool
	found bool
}

// sourceFor is the first source that names a pool for the interface at a place.
func (s *selector) sourceFor(place int) (source, error) {
	at := &s.facts.Interfaces[place]
	for _, ask := range []func(int, *Interface) (source, error){
		s.ofClaim, s.ofPools, s.ofPool, s.ofNamespace, s.ofNetwork, s.ofDefaults,
	} {
		o, err := ask(place, at)
		if err != nil || len(o.offers[0])+len(o.offers[1]) > 0 {
			return o, err
		}
	}
	return source{}, fmt.Errorf("nothing names a pool for it: want one of the annotations %s and %s of the pod, %s of namespace %s, ippools of its network, or a SpiderIPPool with default: true",
		v2beta1.AnnotationPools, v2beta1.AnnotationPool, v2beta1.AnnotationDefaultPoolsV4, s.facts.Pod.Namespace)
}

// ofPools reads the annotation with a choice for each interface. Where it is,
// it has to have one for each that gets addresses.
func (s *selector) ofPools(place int, at *Interface) (source, error) {
	p := &s.said.pools
	if !p.there || p.err != nil {
		return source{}, p.err
	}
	i := slices.IndexFunc(p.value, func(c annotation.Choice) bool { return c.Interface == at.Name })
	if byPlace := len(p.value) > 0 && p.value[0].Interface == ""; byPlace {
		i = place
	}
	if i < 0 || i >= len(p.value) {
		return source{}, fmt.Errorf("annotation %s has no element for it: want one for each interface that gets addresses of pools, by name, or all without names and in the order %s", p.key, namesOf(s.facts.Interfaces))
	}
	c := p.value[i]
	return s.named(podAnnotation(p.key), c.IPv4, c.IPv6, c.CleanGateway), nil
}

func (s *selector) ofPool(_ int, _ *Interface) (source, error) {
	p := &s.said.pool
	if !p.there || p.err != nil {
		return source{}, p.err
	}
	return s.named(podAnnotation(p.key), p.value.IPv4, p.value.IPv6, p.value.CleanGateway), nil
}

func (s *selector) ofNamespace(_ int, _ *Interface) (source, error) {
	v4, v6 := &s.said.defaults[0], &s.said.defaults[1]
	if err := errors.Join(v4.err, v6.err); err != nil {
		return source{}, fmt.Errorf("namespace %s: %w", s.facts.Pod.Namespace, err)
	}
	keys := []string{v4.key, v6.key}
	if len(v4.value) == 0 {
		keys = keys[1:]
	} else if len(v6.value) == 0 {
		keys = keys[:1]
	}
	return s.named("namespace "+s.facts.Pod.Namespace+" by "+strings.Join(keys, " and "), v4.value, v6.value, false), nil
}

func (s *selector) ofNetwork(_ int, at *Interface) (source, error) {
	from := "the cluster's network"
	if at.Network.Name != "" {
		from = "network " + at.Network.String()
	}
	return s.named(from, at.Pools.IPv4, at.Pools.IPv6, false), nil
}

func (s *selector) ofDefaults(int, *Interface) (source, error) {
	o := source{from: "default pools"}
	for _, version := range []int64{4, 6} {
		o.offers[family(version)] = s.matching(func(p *policy.Pool) bool { return p.Default && p.Version() == version })
	}
	return o, nil
}

func podAnnotation(key string) string { return "annotation " + key + " of the pod" }

// named has the pools of names in their order.
func (s *selector) named(from string, v4, v6 []string, clean bool) source {
	return source{from: from, clean: clean, offers: [2][]offer{s.expand(v4, 4), s.expand(v6, 6)}}
}

// expand has the pools that names stand for. A wildcard stands for the pools of
// its family that it matches.
func (s *selector) expand(names []string, version int64) []offer {
	var offers []offer
	for _, name := range names {
		if pool, ok := s.catalog.Pool(name); ok || !isPattern(name) || !s.isOn(version) {
			offers = append(offers, offer{name, pool, ok})
			continue
		}
		matched := s.matching(func(p *policy.Pool) bool {
			ok, err := path.Match(name, p.Name)
			return ok && err == nil && p.Version() == version
		})
		if len(matched) == 0 {
			matched = []offer{{name: name}}
		}
		offers = append(offers, matched...)
	}
	return offers
}

// isPattern says whether a name has what path.Match does not take literally.
func isPattern(name string) bool { return strings.ContainsAny(name, `*?[\`) }

// matching are pools in Spiderpool's order.
func (s *selector) matching(is func(*policy.Pool) bool) []offer {
	var offers []offer
	pools := s.catalog.Pools()
	for i := range pools {
		if is(&pools[i]) {
			offers = append(offers, offer{pools[i].Name, pools[i], true})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return rank(&b.pool) - rank(&a.pool) }) // by name before
	return offers
}

// rank is how closely a pool says who may use it. What comes first in
// Spiderpool's order outweighs all that come later.
func rank(p *policy.Pool) int {
	a := &p.Affinity
	r := 0
	for _, says := range []bool{
		a.Pods != nil || p.Owner != nil,
		len(a.NodeNames) > 0,
		a.Nodes != nil && len(a.NodeNames) == 0,
		len(a.NamespaceNames) > 0,
		a.Namespaces != nil && len(a.NamespaceNames) == 0,
		len(a.Networks) > 0,
	} {
		r *= 2
		if says {
			r++
		}
	}
	return r
}
