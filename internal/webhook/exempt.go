package webhook

import (
	"maps"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"
)

// exempt says whether an update is none of our business: of an object's metadata
// alone, or of all but the spec of one that is being deleted. Whatever rule the
// object breaks, maybe one newer than itself, its finalizer must be removable.
func exempt(r *admissionv1.AdmissionRequest) bool {
	if r.Operation != admissionv1.Update {
		return false
	}
	var object, old map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(r.Object.Raw, &object) != nil ||
		kjson.UnmarshalCaseSensitivePreserveInts(r.OldObject.Raw, &old) != nil {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["deletionTimestamp"] != nil && reflect.DeepEqual(object["spec"], old["spec"]) {
		return true
	}
	reduceMetadata(object)
	reduceMetadata(old)
	return reflect.DeepEqual(object, old)
}

// reduceMetadata leaves of an object's metadata only what rules are about: labels
// and annotations of our domains.
func reduceMetadata(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = map[string]any{
		"labels":      withRules(metadata["labels"]),
		"annotations": withRules(metadata["annotations"]),
	}
}

func withRules(pairs any) map[string]any {
	some := map[string]any{}
	all, _ := pairs.(map[string]any)
	maps.Copy(some, all)
	maps.DeleteFunc(some, func(key string, _ any) bool {
		domain, _, _ := strings.Cut(key, "/")
		return !isWithin(domain, "spidernet.io") && !isWithin(domain, "railhead.io")
	})
	return some
}

// isWithin says whether a domain is a zone, or below it.
func isWithin(domain, zone string) bool {
	return domain == zone || strings.HasSuffix(domain, "."+zone)
}
