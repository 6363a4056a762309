package granter

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"railhead/api/railhead/v1alpha1"
)

// standing is what a node is due.
type standing int

const (
	served  standing = iota
	waiting          // not known to be the node that the lease is of: nothing is granted, taken or told
	freed            // fenced: what it holds is free
	doubted          // gone or replaced: what it holds goes into quarantine
)

const (
	whyFenced   = "node is fenced"
	whyGone     = "node is gone"
	whyReplaced = "node was replaced"
	whyParted   = "its identity is gone, and its last node may use it still"
)

// stand decides the standing of all leases' nodes.
func (r *round) stand() {
	for name, node := range r.view.Nodes {
		switch {
		case node.Fenced:
			r.fenced[name] = node.UID
		case r.fenced[name] != "":
			delete(r.fenced, name)
		}
	}
	for _, l := range r.leases {
		l.standing, l.why = r.standingOf(l)
		l.reason = r.reasonOf(l)
	}
}

// reasonOf is the reason that a lease's status should have. It is made of what
// the standing is made of, so that it ends with it.
func (r *round) reasonOf(l *lease) string {
	node, there := r.view.Nodes[l.name]
	word, said := l.object.Annotations[v1alpha1.AnnotationFenced]
	holder := string(l.uid())
	var reasons []string
	switch {
	case l.standing == waiting && node.UID == "": // it is not known now
		return l.object.Status.Reason
	case l.standing == waiting:
		return ""
	case l.standing == freed && said && holder != "" && word == holder:
		return "fenced by the annotation " + v1alpha1.AnnotationFenced + ", since it names this node's UID: the node gets no addresses until the annotation is removed"
	case l.standing == freed && there:
		reasons = append(reasons, "fenced: the node has the taint "+corev1.TaintNodeOutOfService)
	case l.why != "":
		reasons = append(reasons, l.why)
	}
	if said && word != holder {
		reasons = append(reasons, fmt.Sprintf("%s is %.100q, which is not this node's UID %q: no effect", v1alpha1.AnnotationFenced, word, holder))
	}
	return strings.Join(reasons, "; ")
}

// standingOf is by what a node's addresses can be taken from it without its
// word (R2): it is fenced, or replaced, or gone. Time is none of them.
func (r *round) standingOf(l *lease) (standing, string) {
	node, there := r.view.Nodes[l.name]
	holder, spec, status := l.uid(), l.object.Spec.NodeUID, l.object.Status.NodeUID
	word := l.object.Annotations[v1alpha1.AnnotationFenced]
	switch {
	case holder != "" && word == string(holder),
		there && node.Fenced && node.UID == holder,
		!there && holder != "" && r.fenced[l.name] == holder:
		return freed, whyFenced
	case spec != "" && status != "" && spec != status:
		return doubted, whyReplaced
	case !there:
		return doubted, whyGone
	case spec == "" || node.UID != spec:
		return waiting, ""
	}
	return served, ""
}

// orphans is nodes that hold addresses and have no lease in the view.
func (r *round) orphans() []string {
	var names []string
	for name := range r.now().byNode {
		if r.byNode[name] == nil {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// standingOfOrphan is the same for a node without a lease.
func (r *round) standingOfOrphan(name string) (standing, string) {
	node, there := r.view.Nodes[name]
	switch {
	case there && node.Fenced, !there && r.fenced[name] != "":
		return freed, whyFenced
	case !there:
		return doubted, whyGone
	}
	return waiting, ""
}
