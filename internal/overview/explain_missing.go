package overview

import (
	"fmt"
	"slices"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/internal/ipam/selection"
)

// sayHostNetwork is about a pod without a network of its own.
func (e *Explanation) sayHostNetwork(o *PodObjects) {
	e.say("the pod uses the node's network (spec.hostNetwork): it gets no addresses")
	if o.Pod.Annotations[cniv1.AnnotationNetworks] != "" {
		e.Warnings = append(e.Warnings, "annotation "+cniv1.AnnotationNetworks+" has no effect: a pod on the node's network is attached to no other")
	}
}

// sayEnded is about a pod that runs no more. Its addresses are released a moment
// later, and its SpiderEndpoint then goes.
func (e *Explanation) sayEnded(o *PodObjects) {
	ended := "the pod has ended (" + e.Phase + ")"
	holds := slices.ContainsFunc(e.Interfaces, func(n ExplainedInterface) bool { return len(n.Given) > 0 })
	switch {
	case !o.EndpointRead:
		e.say(ended + ": what it still holds is not known, since its SpiderEndpoint could not be read")
	case !holds:
		e.say(ended + ": it holds no addresses")
	case o.Endpoint.Status.Current.Node == "" && e.Identity != "":
		e.say(ended + ": its addresses are kept for the next pod of " + e.Identity)
	default:
		e.say(fmt.Sprintf("%s and still holds addresses: the agent of node %s releases them when the container runtime says that it ended, or within seven minutes", ended, o.Endpoint.Status.Current.Node))
	}
}

// sayMissing says why interfaces have no addresses, where they have none.
func (e *Explanation) sayMissing(o *PodObjects) {
	isOurs := false
	for i := range e.Interfaces {
		at := &e.Interfaces[i]
		isOurs = isOurs || at.Pools
		if !at.Pools || at.Why != "" || len(at.Given) > 0 {
			continue
		}
		if o.PodNode.Name != "" && !o.EndpointRead {
			e.say("what the pod has is not known, since its SpiderEndpoint could not be read")
		}
		e.say(waitsFor(o, at)...)
	}
	switch {
	case !isOurs && len(e.Why) == 0:
		e.say(noneOfOurs(o))
	case isOurs && o.Lease != nil && o.Lease.Status.Reason != "":
		e.say(reasonOf(o.Lease))
	}
}

// noneOfOurs says why no interface of a pod is served by pools.
func noneOfOurs(o *PodObjects) string {
	if o.Pod.Annotations[cniv1.AnnotationNetworks]+o.Pod.Annotations[cniv1.AnnotationDefaultNetwork] == "" {
		return "the pod is on the cluster's network alone: want annotation " + cniv1.AnnotationNetworks + " with networks whose addresses are of SpiderIPPools"
	}
	return "none of the networks that the pod's annotations name takes addresses of SpiderIPPools: want ipam.type spiderpool in the configuration of one"
}

// reasonOf is the controller's word about a node as a whole.
func reasonOf(lease *v1alpha1.AddressLease) string {
	return fmt.Sprintf("node %s, by its AddressLease: %s", lease.Name, lease.Status.Reason)
}

// waitsFor says why an interface that pools can serve has no address yet.
func waitsFor(o *PodObjects, at *ExplainedInterface) []string {
	switch {
	case o.PodNode.Name == "":
		return []string{"the pod is on no node yet: it gets addresses on the node that the scheduler chooses for it"}
	case o.Phase == phaseRunning && o.EndpointRead && o.Endpoint == nil:
		return []string{"the pod runs, and has no SpiderEndpoint: it was started before the agent gave addresses here, and gets some when it is made anew; or what it got is not published yet"}
	case !o.LeaseRead:
		return []string{"what node " + o.PodNode.Name + " waits for is not known, since its AddressLease could not be read"}
	case o.Lease == nil:
		return []string{fmt.Sprintf("node %s has no AddressLease: want the agent running there, and the CRDs of Railhead installed", o.PodNode.Name)}
	}
	var reasons []string
	for _, p := range o.Lease.Status.Pools {
		isCandidate := func(c selection.Considered) bool { return c.Pool == p.Pool && c.Why == "" }
		if p.Short != "" && slices.ContainsFunc(at.Considered, isCandidate) {
			reasons = append(reasons, fmt.Sprintf("%s: node %s is short of pool %s: %s", at.Interface, o.PodNode.Name, p.Pool, p.Short))
		}
	}
	switch why := unanswered(o.Lease); {
	case len(reasons) > 0:
		return reasons
	case o.Lease.Status.Reason != "" && len(o.Lease.Status.Pools) == 0:
		return []string{reasonOf(o.Lease)}
	case why != "":
		return []string{at.Interface + ": " + why}
	case o.Tried:
		return nil // what failed says more
	}
	return []string{fmt.Sprintf("%s: node %s is short of nothing: its container runtime has not asked for the pod yet, or what the pod got is not published yet", at.Interface, o.PodNode.Name)}
}
