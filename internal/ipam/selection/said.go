package selection

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// said is what the annotations of a pod and its namespace say of pools and
// routes, each read once for all interfaces.
type said struct {
	claim    parsed[*policy.Claim]
	pools    parsed[[]annotation.Choice]
	pool     parsed[annotation.Choice]
	defaults [2]parsed[[]string] // of the namespace, by family
	routes   parsed[[]policy.Route]
	claimed  []string // warnings of the claim
}

// parsed is the value of an annotation, if that is there and can be read.
type parsed[T any] struct {
	key   string
	there bool
	value T
	err   error
}

func read(pod *metav1.ObjectMeta, namespace map[string]string, config policy.Config) said {
	s := said{
		pools:  parse(pod.Annotations, v2beta1.AnnotationPools, annotation.Pools),
		pool:   parse(pod.Annotations, v2beta1.AnnotationPool, annotation.Pool),
		routes: parse(pod.Annotations, v2beta1.AnnotationRoutes, annotation.Routes),
		defaults: [2]parsed[[]string]{
			parse(namespace, v2beta1.AnnotationDefaultPoolsV4, annotation.PoolNames),
			parse(namespace, v2beta1.AnnotationDefaultPoolsV6, annotation.PoolNames),
		},
	}
	s.readClaim(pod.Annotations, config)
	return s
}

// parse reads an annotation. Errors name it.
func parse[T any](annotations map[string]string, key string, read func(*field.Path, string) (T, field.ErrorList)) parsed[T] {
	p := parsed[T]{key: key}
	var text string
	if text, p.there = annotations[key]; !p.there {
		return p
	}
	var errs field.ErrorList
	if p.value, errs = read(annotationsPath().Key(key), text); len(errs) > 0 {
		p.err = policy.FirstErrors(annotationsPath().Key(key), errs).ToAggregate()
	}
	return p
}

func annotationsPath() *field.Path { return field.NewPath("metadata", "annotations") }

func (s *said) readClaim(annotations map[string]string, config policy.Config) {
	s.claim.key = v2beta1.AnnotationSubnets
	if _, ok := annotations[s.claim.key]; !ok {
		s.claim.key = v2beta1.AnnotationSubnet
	}
	if _, s.claim.there = annotations[s.claim.key]; !s.claim.there {
		return
	}
	if off := autoPoolsOff(config); off != "" {
		s.claim.err = fmt.Errorf("annotation %s asks for a pool of the application's own, and %s in %s has these off: want true there, or no such annotation", s.claim.key, off, policy.ConfigMapKey)
		return
	}
	claim, review := policy.ClaimOf(annotationsPath(), annotations, config)
	s.claim.value, s.claimed = claim, review.Warnings
	if !review.OK() {
		s.claim.err = review.Errors.ToAggregate()
	}
}

// autoPoolsOff is the setting by which applications have no pools of their own;
// "" if they may.
func autoPoolsOff(config policy.Config) string {
	switch {
	case !config.EnableSpiderSubnet:
		return "enableSpiderSubnet: false"
	case !config.EnableAutoPool:
		return "enableAutoPoolForApplication: false"
	}
	return ""
}

// warnings are about elements of the annotations that no interface is served by.
func (s *said) warnings(interfaces []Interface) []string {
	warnings := slices.Clone(s.claimed)
	for i, c := range s.pools.value {
		at := annotationsPath().Key(s.pools.key).Index(i)
		place := i
		if c.Interface != "" {
			place = slices.IndexFunc(interfaces, func(n Interface) bool { return n.Name == c.Interface })
		}
		switch {
		case place < 0 || place >= len(interfaces):
			warnings = append(warnings, fmt.Sprintf("%s has no effect: the pod has the interfaces %s", at, namesOf(interfaces)))
		case !interfaces[place].IPAM:
			warnings = append(warnings, fmt.Sprintf("%s has no effect: the addresses of %s are not of a SpiderIPPool", at, interfaces[place].Name))
		}
	}
	return warnings
}

func namesOf(interfaces []Interface) string {
	names := make([]string, len(interfaces))
	for i := range interfaces {
		names[i] = interfaces[i].Name
	}
	return strings.Join(names, ", ")
}
