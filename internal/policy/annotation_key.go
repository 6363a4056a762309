package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"railhead/api/spiderpool/v2beta1"
)

// UnknownAnnotation says that an annotation has no effect on an object which
// reads the known keys, and which was meant; "" for a known key, and for one
// that is another's. In a group that others have keys in, too, that is told only
// of what nearly is a known key; and so it is of a known name in a group that is
// nearly the right one.
func UnknownAnnotation(key string, known []string) string {
	group, name, _ := strings.Cut(key, "/")
	isOurs := group == "cni.spidernet.io" || group == "ipam.spidernet.io" || group == "multus.spidernet.io"
	isShared := slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, group+"/") })
	isKnownName := slices.ContainsFunc(known, func(k string) bool { return nameOf(k) == name })
	if slices.Contains(known, key) || !isOurs && !isShared && !isKnownName {
		return ""
	}
	known = slices.Sorted(slices.Values(known))
	nearest := slices.MinFunc(known, func(a, b string) int {
		return distance(name, nameOf(a)) - distance(name, nameOf(b))
	})
	switch meant, _, _ := strings.Cut(nearest, "/"); {
	case (isOurs || isShared) && isNear(name, nameOf(nearest)), isKnownName && isNear(group, meant):
		return fmt.Sprintf("annotation %s has no effect here: did you mean %s?", key, nearest)
	case isOurs:
		return fmt.Sprintf("annotation %s has no effect here: there are %s", key, strings.Join(known, ", "))
	}
	return ""
}

// nameOf is the name of an annotation in its group.
func nameOf(key string) string { return key[strings.Index(key, "/")+1:] }

// Nearest orders names by how few changes of letters make another of them, and
// then by name.
func Nearest(name string, names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	slices.SortStableFunc(sorted, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return sorted
}

// isNear says whether a known name may be what a name was meant to be.
func isNear(name, known string) bool { return distance(name, known) <= max(1, len(known)/3) }

// distance is how many changes make one name another, whatever their case.
func distance(a, b string) int {
	return levenshtein.ComputeDistance(strings.ToLower(a), strings.ToLower(b))
}

// reviewAnnotationKeys warns of annotations that a SpiderMultusConfig does not read.
func (d *draft) reviewAnnotationKeys(annotations map[string]string) {
	keys := InjectKeys()
	known := append(keys[:], v2beta1.AnnotationNADName, v2beta1.AnnotationCNIVersion, v2beta1.AnnotationCNIConfigName)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if why := UnknownAnnotation(key, known); why != "" {
			d.Warnings = append(d.Warnings, why)
		}
	}
}
