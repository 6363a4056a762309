package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// poolMeaning is a SpiderIPPool that means what a pool does, which is all that is
// in memory of one. It has no generation, so that whatever is read replaces it.
func poolMeaning(p policy.Pool, owner map[string]string) *v2beta1.SpiderIPPool {
	o := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID, Labels: owner}}
	if p.Deleting {
		o.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} // when does not matter
	}
	o.Spec = v2beta1.IPPoolSpec{
		Subnet: p.Subnet.String(), Default: &p.Default, Disable: &p.Disabled,
		NamespaceAffinity: selectorMeaning(p.Affinity.Namespaces), NamespaceName: p.Affinity.NamespaceNames,
		NodeAffinity: selectorMeaning(p.Affinity.Nodes), NodeName: p.Affinity.NodeNames,
		PodAffinity: selectorMeaning(p.Affinity.Pods), MultusName: p.Affinity.Networks,
	}
	if p.Owner != nil {
		o.Spec.PodAffinity = p.Owner.Affinity()
	}
	for _, r := range p.Addresses.Ranges() {
		o.Spec.IPs = append(o.Spec.IPs, r.String())
	}
	if p.Gateway.IsValid() {
		gateway := p.Gateway.String()
		o.Spec.Gateway = &gateway
	}
	for _, r := range p.Routes {
		o.Spec.Routes = append(o.Spec.Routes, v2beta1.Route{Dst: r.Dst.String(), Gw: r.Gw.String()})
	}
	return o
}

// selectorMeaning is a selector as objects have it; nil where there is none.
func selectorMeaning(s labels.Selector) *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	made := &metav1.LabelSelector{}
	requirements, _ := s.Requirements() // one that selects nothing, no pool has
	operators := map[selection.Operator]metav1.LabelSelectorOperator{
		selection.In: metav1.LabelSelectorOpIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
		selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	}
	for _, r := range requirements {
		values := r.Values().List()
		if r.Operator() == selection.Equals {
			metav1.AddLabelToSelector(made, r.Key(), values[0])
			continue
		}
		made.MatchExpressions = append(made.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key(), Operator: operators[r.Operator()], Values: values,
		})
	}
	return made
}
