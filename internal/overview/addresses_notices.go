package overview

import (
	"fmt"
	"slices"
	"strings"

	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/selection"
)

// LeaseNotice is what there is to say of a node's lease as a whole.
type LeaseNotice struct {
	Node string `json:"node"`
	// Reason is the controller's word, such as why the node is given nothing.
	Reason string `json:"reason,omitempty"`
	// Generation is that of a spec which is not answered, and Answered the one that
	// is; 0 both where the latest is answered.
	Generation int64 `json:"generation,omitempty"`
	Answered   int64 `json:"answered,omitempty"`
}

// Message is the notice for people.
func (n *LeaseNotice) Message() string {
	var list []string
	if n.Reason != "" {
		list = append(list, n.Reason)
	}
	if n.Generation > 0 {
		list = append(list, unansweredWords(n.Node, n.Generation, n.Answered))
	}
	return strings.Join(list, "; ")
}

// noticesOf are the leases that have something to say, by node.
func noticesOf(leases []*v1alpha1.AddressLease) []LeaseNotice {
	var list []LeaseNotice
	for _, lease := range leases {
		n := LeaseNotice{Node: lease.Name, Reason: lease.Status.Reason}
		if unanswered(lease) != "" {
			n.Generation, n.Answered = lease.Generation, lease.Status.ObservedGeneration
		}
		if n.Message() != "" {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b LeaseNotice) int { return strings.Compare(a.Node, b.Node) })
	return list
}

// unanswered says that the controller has not answered a lease's spec; "" if it
// has. Of a node that has nothing for a reason the answered generation means nothing.
func unanswered(lease *v1alpha1.AddressLease) string {
	status := &lease.Status
	if status.ObservedGeneration >= lease.Generation || status.Reason != "" && len(status.Pools) == 0 {
		return ""
	}
	return unansweredWords(lease.Name, lease.Generation, status.ObservedGeneration)
}

func unansweredWords(lease string, generation, answered int64) string {
	return fmt.Sprintf("the controller has not answered AddressLease %s yet (generation %d, answered %d): want a leading controller", lease, generation, answered)
}

// IsUnanswered says whether a spec waits for its answer. One was just written,
// some are at any moment: see [StillUnanswered].
func (n *LeaseNotice) IsUnanswered() bool { return n.Generation > 0 }

// StillUnanswered are the notices of a second look, of which those about specs
// count that were not answered at the first one either.
func StillUnanswered(first, second []LeaseNotice) []LeaseNotice {
	list := []LeaseNotice{}
	for _, n := range second {
		waited := func(f LeaseNotice) bool { return f.Node == n.Node && f.Generation > n.Answered }
		if n.IsUnanswered() && !slices.ContainsFunc(first, waited) {
			n.Generation, n.Answered = 0, 0
		}
		if n.Message() != "" {
			list = append(list, n)
		}
	}
	return list
}

// identityErrors names what should be an identity and is none. Its addresses are
// kept for nobody: no pod has it, and none could be gone.
func identityErrors(o *Objects) []error {
	var errs []error
	check := func(text, what, format string, args ...any) {
		if text == "" {
			return
		}
		if _, err := selection.ParseIdentity(text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", what, fmt.Sprintf(format, args...), err))
		}
	}
	for _, l := range o.Ledgers {
		for i := range l.Spec.Runs {
			check(l.Spec.Runs[i].Identity, "PoolLedger "+l.Name, "spec.runs[%d].identity", i)
		}
	}
	for _, l := range o.Leases {
		for i := range l.Spec.Pins {
			check(l.Spec.Pins[i].Identity, "AddressLease "+l.Name, "spec.pins[%d].identity", i)
		}
		for i := range l.Status.Pools {
			for j := range l.Status.Pools[i].Grants {
				check(l.Status.Pools[i].Grants[j].Identity, "AddressLease "+l.Name, "status.pools[%d].grants[%d].identity", i, j)
			}
		}
	}
	for _, e := range o.Endpoints {
		check(e.Annotations[v1alpha1.AnnotationIdentity], "SpiderEndpoint "+e.Namespace+"/"+e.Name, "metadata.annotations[%s]", v1alpha1.AnnotationIdentity)
	}
	return errs
}
