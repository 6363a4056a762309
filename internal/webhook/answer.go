package webhook

import (
	"encoding/json"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// answer is what is said of a request. The zero value admits it as it is.
type answer struct {
	patch    []jsonpatch.Operation
	warnings []string
	refusal  *metav1.Status
}

// Verdicts, as metrics call them.
const (
	allowed = "allowed"
	changed = "changed"
	refused = "refused"
	failed  = "failed" // and so not admitted, but not because of what it is
)

func (a answer) verdict() string {
	switch {
	case a.refusal != nil && a.refusal.Code == http.StatusUnprocessableEntity:
		return refused
	case a.refusal != nil:
		return failed
	case len(a.patch) > 0:
		return changed
	}
	return allowed
}

// invalid refuses an object for what is wrong with it, all of it at once.
func invalid(r *admissionv1.AdmissionRequest, errs field.ErrorList, warnings []string) answer {
	kind := schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}
	status := apierrors.NewInvalid(kind, r.Name, errs).Status()
	return answer{refusal: &status, warnings: warnings}
}

// unreadable does not admit what the API server should not have sent.
func unreadable(err error) answer {
	status := apierrors.NewBadRequest(err.Error()).Status()
	return answer{refusal: &status}
}

// unable does not admit what could not be decided.
func unable(err error) answer {
	status := apierrors.NewInternalError(err).Status()
	return answer{refusal: &status}
}

func (a answer) response(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: r.UID, Allowed: a.refusal == nil, Warnings: a.warnings, Result: a.refusal}
	if a.refusal != nil || len(a.patch) == 0 {
		return response
	}
	patch, err := json.Marshal(a.patch)
	if err != nil {
		return unable(err).response(r)
	}
	response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	return response
}
