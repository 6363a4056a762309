package pool

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Ready is the condition of a pool, and these are its reasons.
const (
	Ready = "Ready"

	ReasonReady       = "Ready"       // it gives addresses
	ReasonDisabled    = "Disabled"    // its user does not want it to
	ReasonInvalid     = "Invalid"     // it breaks rules
	ReasonConflict    = "Conflict"    // another one, which was there first, has its addresses
	ReasonTerminating = "Terminating" // it was deleted and waits for addresses in use
)

// verdict is what a pool's condition follows from.
type verdict struct {
	own, review policy.Review // what the rules say of the pool alone, and beside others
	served      bool          // whether the cluster has addresses of its family
	use         use
}

// readiness says whether a pool gives addresses, and if not, why.
func readiness(pool *v2beta1.SpiderIPPool, v verdict) metav1.Condition {
	c := metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, ObservedGeneration: pool.Generation}
	switch {
	case pool.DeletionTimestamp != nil:
		c.Reason, c.Message = ReasonTerminating, terminating(v.use)
	case !v.own.OK():
		c.Reason, c.Message = ReasonInvalid, v.own.Message()
	case !v.review.OK() && !v.served:
		c.Reason, c.Message = ReasonInvalid, v.review.Message()
	case !v.review.OK():
		c.Reason, c.Message = ReasonConflict, v.review.Message()
	case !v.use.review.OK(): // it might give an address that a pod has
		c.Reason, c.Message = ReasonInvalid, v.use.review.Message()
	case set(pool.Spec.Disable) || set(pool.Spec.Disabled):
		c.Reason, c.Message = ReasonDisabled, "spec.disable is true: it gives no more addresses, those in use stay"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonReady, "it gives addresses"
	}
	return c
}

func set(flag *bool) bool { return flag != nil && *flag }

func terminating(u use) string {
	switch {
	case !u.review.OK():
		return "it stays, for its addresses may be in use: " + u.review.Message()
	case u.holder != "":
		return "it goes once " + u.holder + " has no address of it"
	case u.known == 0 && u.kept == 1:
		return "it goes once the one address is given back that a node holds or a pod keeps over its lives"
	case u.known == 0:
		return fmt.Sprintf("it goes once the %d addresses are given back that nodes hold or pods keep over their lives", u.kept)
	case u.known == 1:
		return "it goes once the one address in use is free"
	}
	return fmt.Sprintf("it goes once the %d addresses in use are free", u.known)
}
