package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy/annotation"
)

// PodName is a pod on a network.
type PodName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Times     int    `json:"times"` // how many of its interfaces are on it
}

// FullName is "namespace/name".
func (p *PodName) FullName() string { return p.Namespace + "/" + p.Name }

// multusNamespace is where Multus looks for the network of a pod's eth0, where
// that has no namespace.
const multusNamespace = "kube-system"

// attachmentsOf returns the networks that a pod asks for, and why an annotation
// is not understood.
func attachmentsOf(pod *metav1.PartialObjectMetadata) ([]types.NamespacedName, error) {
	var (
		list []types.NamespacedName
		errs field.ErrorList
	)
	path := field.NewPath("metadata", "annotations")
	if text, ok := pod.Annotations[cniv1.AnnotationDefaultNetwork]; ok {
		a, bad := annotation.DefaultNetwork(path.Key(cniv1.AnnotationDefaultNetwork), text)
		if errs = append(errs, bad...); len(bad) == 0 {
			list = append(list, types.NamespacedName{Namespace: cmp.Or(a.Namespace, multusNamespace), Name: a.Name})
		}
	}
	if text, ok := pod.Annotations[cniv1.AnnotationNetworks]; ok {
		networks, bad := annotation.Networks(path.Key(cniv1.AnnotationNetworks), text)
		errs = append(errs, bad...)
		for _, a := range networks {
			list = append(list, types.NamespacedName{Namespace: cmp.Or(a.Namespace, pod.Namespace), Name: a.Name})
		}
	}
	if len(errs) > 0 {
		return list, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, errs.ToAggregate())
	}
	return list, nil
}

// usersOf returns the pods by NetworkAttachmentDefinition, in order.
func usersOf(pods []*metav1.PartialObjectMetadata) map[types.NamespacedName][]PodName {
	users := map[types.NamespacedName][]PodName{}
	for _, pod := range pods {
		times := map[types.NamespacedName]int{}
		attachments, _ := attachmentsOf(pod) // what is wrong is for Stray to say
		for _, key := range attachments {
			times[key]++
		}
		for key, n := range times {
			users[key] = append(users[key], PodName{Namespace: pod.Namespace, Name: pod.Name, Times: n})
		}
	}
	for _, list := range users {
		slices.SortFunc(list, func(a, b PodName) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return users
}

// Stray says which networks pods ask for that there are not, one error each, and
// which pods ask in a way that cannot be understood; nil where all is well, or
// pods or networks were not read.
func Stray(o *Objects) []error {
	if o.NADs == nil {
		return nil
	}
	exists := map[types.NamespacedName]bool{}
	for _, n := range o.NADs {
		exists[types.NamespacedName{Namespace: n.Namespace, Name: n.Name}] = true
	}
	isHere := func(namespace string) bool { return o.Namespace == "" || o.Namespace == namespace }
	var errs []error
	for _, pod := range o.Pods {
		if _, err := attachmentsOf(pod); err != nil && isHere(pod.Namespace) {
			errs = append(errs, err)
		}
	}
	users := usersOf(o.Pods)
	byName := func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	for _, key := range slices.SortedFunc(maps.Keys(users), byName) {
		if isHere(key.Namespace) && !exists[key] {
			errs = append(errs, missingNetwork(key, users[key]))
		}
	}
	return errs
}

// missingNetwork says that pods, one or more, ask for a network that there is not.
func missingNetwork(key types.NamespacedName, pods []PodName) error {
	if len(pods) == 1 {
		return fmt.Errorf("pod %s asks for NetworkAttachmentDefinition %s, which does not exist", pods[0].FullName(), key)
	}
	return fmt.Errorf("%d pods, such as %s, ask for NetworkAttachmentDefinition %s, which does not exist", len(pods), pods[0].FullName(), key)
}
