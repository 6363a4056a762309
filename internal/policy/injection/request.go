package injection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy"
)

// request is the annotation that counts for a pod.
type request struct {
	key    string
	raw    string
	values []string
	ofPod  bool // and not of its namespace
}

// requestOf returns the annotation that counts, nil if there is none: the pod's
// own before its namespace's, the first key before the second. One without a value
// counts as none, which is said of the pod's.
func requestOf(pod, namespace map[string]string) (asked *request, warnings []string) {
	for _, key := range policy.InjectKeys() {
		raw, has := pod[key]
		if values := policy.InjectValues(raw); len(values) > 0 {
			return &request{key: key, raw: raw, values: values, ofPod: true}, warnings
		}
		if has {
			warnings = append(warnings, fmt.Sprintf("annotation %s is empty and has no effect: want a value that SpiderMultusConfigs carry, or several with commas", key))
		}
	}
	for _, key := range policy.InjectKeys() {
		if values := policy.InjectValues(namespace[key]); len(values) > 0 {
			return &request{key: key, raw: namespace[key], values: values}, warnings
		}
	}
	return nil, warnings
}

// Asks says whether a pod asks for networks by its own annotations, so that those of
// its namespace do not matter.
func Asks(pod map[string]string) bool {
	asked, _ := requestOf(pod, nil)
	return asked != nil
}

// networks returns what all values name, each network once, or why some of it
// cannot be had: for each value what it names, and what of that lacks something.
func (r *request) networks(find Find, known Values) ([]policy.Network, error) {
	if strings.ContainsAny(r.raw, `[]{}"`) {
		return nil, r.refuse("is JSON: want values separated by commas" + r.withoutJSON())
	}
	var networks []policy.Network
	var findings []string
	served := true
	seen := map[types.NamespacedName]bool{}
	for _, value := range r.values {
		found := find(r.key, value)
		finding, ok := r.review(value, found, known)
		findings = append(findings, finding)
		served = served && ok
		for _, n := range found {
			if name := (types.NamespacedName{Namespace: n.Namespace, Name: n.NAD}); !seen[name] {
				seen[name] = true
				networks = append(networks, n)
			}
		}
	}
	if !served {
		return nil, r.refuse(strings.Join(findings, "; "))
	}
	return networks, nil
}

// review says of a value what it names, and whether a pod can have all of that.
func (r *request) review(value string, found []policy.Network, known Values) (finding string, ok bool) {
	about := ""
	if len(r.values) > 1 {
		about = strconv.Quote(value) + ": "
	}
	if len(found) == 0 {
		return about + r.unmatched(value, known), false
	}
	ok = true
	names := make([]string, len(found))
	for i, n := range found {
		names[i] = n.Namespace + "/" + n.Name
		if missing := missing(r.key, n); missing != "" {
			names[i] += " (" + missing + ")"
			ok = false
		}
	}
	return about + strings.Join(names, ", "), ok
}

// withoutJSON is a JSON list of values as it should have been written.
func (r *request) withoutJSON() string {
	var values []string
	if json.Unmarshal([]byte(r.raw), &values) != nil || len(values) == 0 {
		return ""
	}
	return fmt.Sprintf(": write %q", strings.Join(values, ","))
}

// maxValues is how many values an error suggests.
const maxValues = 5

// unmatched says why no network has a value, and which others there are.
func (r *request) unmatched(value string, known Values) string {
	text := "no SpiderMultusConfig has it in this annotation"
	for _, key := range policy.InjectKeys() {
		if key != r.key && slices.Contains(known(key), value) {
			_, short, _ := strings.Cut(key, "/")
			return fmt.Sprintf("%s: it is a value of %s", text, short)
		}
	}
	there := policy.Nearest(value, known(r.key))
	switch {
	case len(there) == 0:
		return text + ": there is no value of it"
	case len(there) > maxValues:
		return fmt.Sprintf("%s: there are %s and %d more", text, strings.Join(there[:maxValues], ", "), len(there)-maxValues)
	}
	return fmt.Sprintf("%s: there are %s", text, strings.Join(there, ", "))
}

// refuse is the error of a request.
func (r *request) refuse(detail string) error {
	if !r.ofPod {
		detail = "annotation of the pod's namespace: " + detail
	}
	return field.Invalid(annotationPath(r.key), r.raw, detail)
}
