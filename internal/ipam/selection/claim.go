package selection

import (
	"fmt"
	"slices"

	"railhead/internal/policy"
)

// ofClaim has the own pools of a pod's application. Interfaces that the claim
// does not name are left to other sources.
func (s *selector) ofClaim(_ int, at *Interface) (source, error) {
	p := &s.said.claim
	if !p.there || p.err != nil {
		return source{}, p.err
	}
	i := slices.IndexFunc(p.value.Interfaces, func(c policy.InterfaceClaim) bool { return c.Interface == at.Name })
	if i < 0 {
		return source{}, nil
	}
	if len(s.owners) == 0 {
		return source{}, fmt.Errorf("annotation %s asks for a pool of the application's own, and no application made the pod: want a Deployment, StatefulSet or the like above it, or the annotation ipam.spidernet.io/ippools instead", p.key)
	}
	claim := &p.value.Interfaces[i]
	o := source{from: podAnnotation(p.key)}
	for _, version := range []int64{4, 6} {
		subnets := claim.IPv4
		if version == 6 {
			subnets = claim.IPv6
		}
		if len(subnets) == 0 {
			continue
		}
		own := s.matching(func(pool *policy.Pool) bool {
			return pool.Version() == version && pool.Interface == at.Name && !pool.Deleting && s.isOwn(pool)
		})
		if len(own) == 0 {
			return source{}, fmt.Errorf("annotation %s asks for a pool of the own of %s, of IPv%d and SpiderSubnets %v: %w", p.key, s.owners[len(s.owners)-1], version, subnets, ErrNotYet)
		}
		o.offers[family(version)] = own
	}
	return o, nil
}

// isOwn says whether a pool was made for an application of the pod, and for no
// earlier one of its name: that pool is handed on by the controller or goes.
func (s *selector) isOwn(pool *policy.Pool) bool {
	return pool.Owner != nil && slices.Contains(s.owners, *pool.Owner)
}
