package annotation

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// ReviewPod checks the annotations of a pod or pod template, by name. Those of
// others are passed over. Warnings are about what has no effect.
func ReviewPod(path *field.Path, annotations map[string]string) (errs field.ErrorList, warnings []string) {
	errs, warnings = review(path, annotations, podTable)
	claims := map[string]string{}
	for _, key := range []string{v2beta1.AnnotationSubnets, v2beta1.AnnotationSubnet} {
		if text, ok := annotations[key]; ok {
			claims[key] = text
		}
	}
	_, claimed := policy.ClaimOf(path, claims, policy.DefaultConfig())
	errs = append(errs, claimed.Errors...)
	_, rdma := annotations[v2beta1.AnnotationInjectRDMA]
	if _, network := annotations[v2beta1.AnnotationInjectNetwork]; rdma && network {
		warnings = append(warnings, fmt.Sprintf("annotation %s has no effect beside %s", v2beta1.AnnotationInjectNetwork, v2beta1.AnnotationInjectRDMA))
	}
	return errs, warnings
}

// ReviewNamespace checks the annotations of a namespace, likewise.
func ReviewNamespace(path *field.Path, annotations map[string]string) (errs field.ErrorList, warnings []string) {
	return review(path, annotations, namespaceTable)
}

// grammar checks the value of one annotation.
type grammar func(path *field.Path, text string) field.ErrorList

func review(path *field.Path, annotations map[string]string, table map[string]grammar) (errs field.ErrorList, warnings []string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if check, ok := table[key]; ok {
			errs = append(errs, policy.FirstErrors(path.Key(key), check(path.Key(key), annotations[key]))...)
		}
	}
	return errs, unknown(annotations, table)
}

// UnknownOfPod says of each annotation of a pod that it has no effect, where it
// looks like one that would; of another's it says nothing.
func UnknownOfPod(annotations map[string]string) []string { return unknown(annotations, podTable) }

// UnknownOfNamespace says so of those of a namespace.
func UnknownOfNamespace(annotations map[string]string) []string {
	return unknown(annotations, namespaceTable)
}

func unknown(annotations map[string]string, table map[string]grammar) (warnings []string) {
	known := slices.Collect(maps.Keys(table))
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if why := policy.UnknownAnnotation(key, known); why != "" {
			warnings = append(warnings, why)
		}
	}
	return policy.FirstWarnings(warnings)
}

// reviewElsewhere is of annotations that policy.ClaimOf reads.
func reviewElsewhere(*field.Path, string) field.ErrorList { return nil }

// errorsOf is the grammar of what a reader reads.
func errorsOf[T any](read func(*field.Path, string) (T, field.ErrorList)) grammar {
	return func(path *field.Path, text string) field.ErrorList {
		_, errs := read(path, text)
		return errs
	}
}
