// Package injection gives a pod all networks that carry the value of its
// annotation, or of its namespace's: their names in the networks annotation, and
// their resources in its containers. It reads nothing: the caller has the
// namespace's annotations and finds networks. It adds and raises, and never
// removes or lowers what a user wrote.
//
// Source: end of spec/003, §5 of the reference of Spiderpool, networks annotation
// of the Kubernetes Network Plumbing Working Group, version 1.3.
package injection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// Result is what was done to a pod.
type Result struct {
	Changed  bool
	Warnings []string
}

// Find returns the networks whose annotation key has the value, in the order that
// pods get them.
type Find func(key, value string) []policy.Network

// Values returns all values that networks have in their annotation key.
type Values func(key string) []string

// Inject changes a pod in place; done again, it changes nothing. Annotations of
// the pod's namespace count where the pod has none of the two itself. A pod that
// asks for no network is left as it is.
//
// An error is always a *field.Error: the pod cannot be served as it asks to be,
// and is not changed.
func Inject(pod *corev1.Pod, namespace map[string]string, find Find, values Values) (Result, error) {
	asked, ignored := requestOf(pod.Annotations, namespace)
	result := Result{Warnings: append(ignored, annotation.UnknownOfPod(pod.Annotations)...)}
	if asked == nil {
		return result, nil
	}
	if pod.Spec.HostNetwork {
		if !asked.ofPod {
			result.Warnings = append(result.Warnings, fmt.Sprintf("annotation %s of the namespace does not count for this pod: it uses the host's network (spec.hostNetwork)", asked.key))
			return result, nil
		}
		return Result{}, asked.refuse("the pod uses the host's network (spec.hostNetwork) and can have no network of its own: remove one of the two")
	}
	networks, err := asked.networks(find, values)
	if err != nil {
		return Result{}, err
	}
	path := annotationPath(cniv1.AnnotationNetworks)
	listed, err := parseSelections(pod.Annotations[cniv1.AnnotationNetworks])
	if err != nil {
		return Result{}, policy.FirstErrors(path, field.ErrorList{field.Invalid(path, pod.Annotations[cniv1.AnnotationNetworks], err.Error())})[0]
	}
	list := merge(listed, networks, pod.Namespace)
	if err := policy.TooMany(path, len(list), policy.MostNetworks, fmt.Sprintf("networks, of which annotation %s adds %d", asked.key, len(list)-len(listed))); err != nil {
		return Result{}, err
	}
	if len(list) > len(listed) {
		if err := setNetworks(pod, list); err != nil {
			return Result{}, field.InternalError(path, err)
		}
		result.Changed = true
	}
	if raise(pod, needs(list, networks, pod.Namespace)) {
		result.Changed = true
	}
	return result, nil
}

func setNetworks(pod *corev1.Pod, list []selection) error {
	text, err := formatSelections(list)
	if err != nil {
		return err
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[cniv1.AnnotationNetworks] = text
	return nil
}

// annotationPath is where an annotation stands in its object.
func annotationPath(key string) *field.Path {
	return field.NewPath("metadata", "annotations").Key(key)
}
