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
// that is not Spiderpool's.
func UnknownAnnotation(key string, known []string) string {
	if !isOurs(key) || slices.Contains(known, key) {
		return ""
	}
	known = slices.DeleteFunc(slices.Sorted(slices.Values(known)), func(k string) bool { return !isOurs(k) })
	name := func(k string) string { return k[strings.Index(k, "/")+1:] }
	nearest := slices.MinFunc(known, func(a, b string) int {
		return distance(name(key), name(a)) - distance(name(key), name(b))
	})
	if isNear(name(key), name(nearest)) {
		return fmt.Sprintf("annotation %s has no effect here: did you mean %s?", key, nearest)
	}
	return fmt.Sprintf("annotation %s has no effect here: there are %s", key, strings.Join(known, ", "))
}

// isOurs says whether an annotation is one of those that are read here; those
// of others are theirs.
func isOurs(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "cni.spidernet.io" || domain == "ipam.spidernet.io" || domain == "multus.spidernet.io"
}

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
