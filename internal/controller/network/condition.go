package network

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy"
)

// Ready is the condition of a SpiderMultusConfig, and these are its reasons.
const (
	Ready = "Ready"

	ReasonReady    = "Ready"    // its NetworkAttachmentDefinition is there
	ReasonInvalid  = "Invalid"  // it breaks rules
	ReasonConflict = "Conflict" // its NetworkAttachmentDefinition is somebody else's
)

func ready(name string) metav1.Condition {
	return metav1.Condition{
		Type: Ready, Status: metav1.ConditionTrue, Reason: ReasonReady,
		Message: "NetworkAttachmentDefinition " + name + " is as it must be",
	}
}

// refused tells one that is in the way of another from one that is wrong.
func refused(review policy.Review) metav1.Condition {
	c := metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: ReasonConflict, Message: review.Message()}
	for _, e := range review.Errors {
		if e.Type != field.ErrorTypeDuplicate {
			c.Reason = ReasonInvalid
		}
	}
	return c
}

func broken(err error) metav1.Condition {
	return metav1.Condition{Type: Ready, Status: metav1.ConditionFalse, Reason: ReasonInvalid, Message: err.Error()}
}

func taken(name, owner string) metav1.Condition {
	return metav1.Condition{
		Type: Ready, Status: metav1.ConditionFalse, Reason: ReasonConflict,
		Message: "NetworkAttachmentDefinition " + name + " belongs to " + owner + ": delete it there, or name another in the annotation multus.spidernet.io/cr-name of a new SpiderMultusConfig",
	}
}
