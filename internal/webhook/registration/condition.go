package registration

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"railhead/api/spiderpool/v2beta1"
)

// CEL expressions over a request.
const (
	celDeleted     = "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)"
	celHostNetwork = "has(object.spec.hostNetwork) && object.spec.hostNetwork"
)

// celAsks is whether a pod or namespace has one of our annotations.
func celAsks() string {
	return fmt.Sprintf("has(object.metadata.annotations) && ('%s' in object.metadata.annotations || '%s' in object.metadata.annotations)",
		v2beta1.AnnotationInjectRDMA, v2beta1.AnnotationInjectNetwork)
}

// beginsOrCeasesToAsk is a write of a namespace that has it carry one of our
// annotations, or no more. Other writes do not depend on us.
func beginsOrCeasesToAsk() admissionregistrationv1.MatchCondition {
	before := strings.ReplaceAll(celAsks(), "object.", "oldObject.")
	return admissionregistrationv1.MatchCondition{
		Name:       "begins-or-ceases-to-ask",
		Expression: "(" + celAsks() + ") != (request.operation == 'UPDATE' && " + before + ")",
	}
}

// notBeingDeleted lets finalizers of objects that are being deleted be removed
// while no replica answers.
func notBeingDeleted() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: "not-being-deleted", Expression: celDeleted}}
}

func askingThemselves() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "asks-for-networks", Expression: celAsks()}
}

func notAskingThemselves() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "asks-for-none-itself", Expression: "!(" + celAsks() + ")"}
}

func onHostNetwork() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "on-host-network", Expression: celHostNetwork}
}

func notOnHostNetwork() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{Name: "not-on-host-network", Expression: "!(" + celHostNetwork + ")"}
}
