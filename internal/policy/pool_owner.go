package policy

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// Application is a workload that has pools of its own.
type Application struct {
	GroupVersion, Kind, Namespace, Name string
	UID                                 types.UID // "" in a pool whose affinity alone names the application
}

// affinityPrefix begins the keys that name an application in a pod affinity.
const affinityPrefix = "ipam.spidernet.io/app-"

// Labels are the labels of the application's own pools.
func (a Application) Labels() map[string]string {
	return map[string]string{
		// A label value has no slash.
		v2beta1.LabelOwnerGroupVersion: strings.ReplaceAll(a.GroupVersion, "/", "_"),
		v2beta1.LabelOwnerKind:         a.Kind,
		v2beta1.LabelOwnerNamespace:    a.Namespace,
		v2beta1.LabelOwnerName:         a.Name,
		v2beta1.LabelOwnerUID:          string(a.UID),
	}
}

// Affinity is the pod affinity of the application's own pools.
func (a Application) Affinity() *metav1.LabelSelector {
	group, version, both := strings.Cut(a.GroupVersion, "/")
	if !both {
		group, version = "", a.GroupVersion
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{
		v2beta1.AffinityAppGroup:     group,
		v2beta1.AffinityAppVersion:   version,
		v2beta1.AffinityAppKind:      a.Kind,
		v2beta1.AffinityAppNamespace: a.Namespace,
		v2beta1.AffinityAppName:      a.Name,
	}}
}

// ownerOf is the application whose own pool it is, by labels or by pod
// affinity, nil if it is everybody's. Both are held against each other.
func ownerOf(obj *v2beta1.SpiderIPPool) (*Application, Review) {
	path := field.NewPath("spec", "podAffinity")
	labeled, review := ownerOfLabels(obj.Labels)
	complete := review.OK()
	named, more := ownerOfAffinity(path, obj.Spec.PodAffinity, labeled != nil)
	review.add(more)
	switch {
	case labeled == nil:
		return named, review
	case named == nil && more.OK():
		review.Errors = append(review.Errors, field.Required(path, "the labels say that the pool is "+labeled.String()+"'s own: "+wantAffinity))
	case named != nil && complete && !named.isOf(*labeled):
		review.refuse(path, named.String(), "the labels say that the pool is %s's own: want the same application in both", labeled)
	}
	return labeled, review
}

// wantAffinity is what the pod affinity of an application's own pool must be.
const wantAffinity = "want matchLabels with the five keys " + affinityPrefix + "{api-group,api-version,kind,namespace,name} and nothing else"

// String is the application in words.
func (a Application) String() string {
	return a.Kind + " " + a.Namespace + "/" + a.Name + " (" + a.GroupVersion + ")"
}

// ownerOfLabels reads the labels owner-application-*.
func ownerOfLabels(labels map[string]string) (*Application, Review) {
	a := Application{
		GroupVersion: strings.ReplaceAll(labels[v2beta1.LabelOwnerGroupVersion], "_", "/"),
		Kind:         labels[v2beta1.LabelOwnerKind],
		Namespace:    labels[v2beta1.LabelOwnerNamespace],
		Name:         labels[v2beta1.LabelOwnerName],
		UID:          types.UID(labels[v2beta1.LabelOwnerUID]),
	}
	if a == (Application{}) {
		return nil, Review{}
	}
	var review Review
	for _, key := range slices.Sorted(maps.Keys(a.Labels())) {
		if labels[key] == "" {
			review.Errors = append(review.Errors, field.Required(field.NewPath("metadata", "labels").Key(key),
				"an application's own pool has all labels ipam.spidernet.io/owner-application-{gv,kind,namespace,name,uid}"))
		}
	}
	return &a, review
}

// ownerOfAffinity reads an affinity of keys app-*. Where it must name an
// application it has all of them and nothing else; otherwise such an affinity
// selects pods by their labels, as any other.
func ownerOfAffinity(path *field.Path, s *metav1.LabelSelector, must bool) (*Application, Review) {
	var review Review
	if s == nil || !must && !namesApplication(s) {
		return nil, review
	}
	l := s.MatchLabels
	a := Application{
		GroupVersion: strings.TrimPrefix(l[v2beta1.AffinityAppGroup]+"/"+l[v2beta1.AffinityAppVersion], "/"),
		Kind:         l[v2beta1.AffinityAppKind],
		Namespace:    l[v2beta1.AffinityAppNamespace],
		Name:         l[v2beta1.AffinityAppName],
	}
	want := a.Affinity().MatchLabels
	for _, key := range slices.Sorted(maps.Keys(l)) {
		if _, known := want[key]; !known {
			review.forbid(path.Child("matchLabels").Key(key), "is no key of an application's own pool: %s", wantAffinity)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		// The core group is "".
		if _, there := l[key]; !there || l[key] == "" && key != v2beta1.AffinityAppGroup {
			review.Errors = append(review.Errors, field.Required(path.Child("matchLabels").Key(key), "names the application whose own pool it is: "+wantAffinity))
		}
	}
	if len(s.MatchExpressions) > 0 {
		review.forbid(path.Child("matchExpressions"), "an application's own pool has none: %s", wantAffinity)
	}
	switch {
	case review.OK():
		return &a, review
	case must:
		return nil, review
	}
	var selects Review
	selects.warn(path, "selects pods by their labels, and names no application: for that %s", wantAffinity)
	return nil, selects
}

// namesApplication says whether a selector has a key app-*.
func namesApplication(s *metav1.LabelSelector) bool {
	for key := range s.MatchLabels {
		if strings.HasPrefix(key, affinityPrefix) {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return strings.HasPrefix(e.Key, affinityPrefix)
	})
}
