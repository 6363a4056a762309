package annotation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy"
)

// UnknownKeys finds keys of an element of the JSON form that nobody reads, and of
// what is in it. What is wrong with values is for others to say.
func UnknownKeys(at *field.Path, raw json.RawMessage) field.ErrorList {
	keys := keysOf(raw)
	errs := unknownKeys(at, keys, elementKeys)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch value := keys[key]; {
		case strings.EqualFold(key, "bandwidth"):
			errs = append(errs, unknownKeys(at.Child(key), keysOf(value), bandwidthKeys)...)
		case strings.EqualFold(key, "portMappings"):
			var mappings []json.RawMessage
			_ = json.Unmarshal(value, &mappings) // what is no list has none
			for i := range mappings {
				errs = append(errs, unknownKeys(at.Child(key).Index(i), keysOf(mappings[i]), portMappingKeys)...)
			}
		}
	}
	return errs
}

// keysOf are the keys of a JSON object; what is none has no keys.
func keysOf(raw json.RawMessage) (keys map[string]json.RawMessage) {
	if json.Unmarshal(raw, &keys) != nil {
		return nil
	}
	return keys
}

// unknownKeys finds keys that are none of the known, in whatever case: the decoder
// does not mind that. Those with a "." belong to whoever has that name in the DNS;
// the standard keeps all others for itself.
func unknownKeys(at *field.Path, keys map[string]json.RawMessage, known []string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if strings.Contains(key, ".") || slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
			continue
		}
		errs = append(errs, field.Forbidden(at.Child(key), fmt.Sprintf("unknown key with the value %s: %s", keys[key], policy.Suggestion(key, known))))
	}
	return errs
}
