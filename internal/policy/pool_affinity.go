package policy

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// affinityOf parses who may use a pool. The pod affinity of an application's
// own pool names the application and selects no labels.
func affinityOf(spec *field.Path, s *v2beta1.IPPoolSpec, owned bool) (Affinity, Review) {
	var a Affinity
	var review Review
	if !owned {
		a.Pods = review.selector(spec.Child("podAffinity"), s.PodAffinity)
	}
	a.Namespaces = review.optionalSelector(spec.Child("namespaceAffinity"), s.NamespaceAffinity)
	a.Nodes = review.optionalSelector(spec.Child("nodeAffinity"), s.NodeAffinity)
	a.NamespaceNames = review.names(spec.Child("namespaceName"), s.NamespaceName, "the name of a namespace", validation.IsDNS1123Label)
	a.NodeNames = review.names(spec.Child("nodeName"), s.NodeName, "the name of a node", validation.IsDNS1123Subdomain)
	a.Networks = review.names(spec.Child("multusName"), s.MultusName, `the name of a network, or "namespace/name"`, isNetworkName)
	if len(s.NamespaceName) > 0 && s.NamespaceAffinity != nil {
		review.warn(spec.Child("namespaceAffinity"), "has no effect beside namespaceName, which counts instead")
	}
	if len(s.NodeName) > 0 && s.NodeAffinity != nil {
		review.warn(spec.Child("nodeAffinity"), "has no effect beside nodeName, which counts instead")
	}
	return a, review
}

// selector parses a selector, nil if there is none. One that selects
// everything is refused, as a mistake that opens the pool to everybody.
func (r *Review) selector(path *field.Path, s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return nil
	}
	if selectsAll(s) {
		r.Errors = append(r.Errors, field.Required(path, "an empty selector selects everything: want matchLabels or matchExpressions, or leave it out"))
		return nil
	}
	if errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path); len(errs) > 0 {
		r.Errors = append(r.Errors, namingOperators(errs)...)
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		r.refuse(path, s, "%v", err)
		return nil
	}
	return selector
}

// namingOperators has errors about an operator say which there are, as the API
// server does not.
func namingOperators(errs field.ErrorList) field.ErrorList {
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
	}
	for i, err := range errs {
		if operator, ok := err.BadValue.(metav1.LabelSelectorOperator); ok && !slices.Contains(operators, operator) {
			errs[i] = field.NotSupported(field.NewPath(err.Field), operator, operators)
		}
	}
	return errs
}

// optionalSelector is selector, but for one that selects everything: Spiderpool
// has always taken it in these places, and so it is as if it were not there.
func (r *Review) optionalSelector(path *field.Path, s *metav1.LabelSelector) labels.Selector {
	if s != nil && selectsAll(s) {
		r.warn(path, "is empty and selects everything: want matchLabels or matchExpressions, or leave it out")
		return nil
	}
	return r.selector(path, s)
}

// selectsAll says whether a selector has no requirement.
func selectsAll(s *metav1.LabelSelector) bool {
	return len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// names checks names of a kind, and gives those that can be one.
func (r *Review) names(path *field.Path, names []string, want string, check func(string) []string) []string {
	var valid []string
	for i, name := range names {
		problems := check(name)
		switch {
		case len(problems) > 0:
			r.refuse(path.Index(i), name, "want %s: %s", want, strings.Join(problems, "; "))
		case slices.Contains(valid, name):
			r.warn(path.Index(i), "%q is listed twice", name)
		default:
			valid = append(valid, name)
		}
	}
	return valid
}

// isNetworkName says why a text is neither "name" nor "namespace/name".
func isNetworkName(text string) []string {
	namespace, name, both := strings.Cut(text, "/")
	if !both {
		return validation.IsDNS1123Subdomain(text)
	}
	return append(validation.IsDNS1123Label(namespace), validation.IsDNS1123Subdomain(name)...)
}
