package webhook

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/policy"
	"railhead/internal/policy/manifest"
)

// mutate fills in an object's defaults, and refuses what breaks rules as validate
// does: between the two the API server checks the schema, whose words do not say
// what would be accepted.
func (s *Server) mutate(_ context.Context, r *admissionv1.AdmissionRequest) answer {
	if !isWritten(r) || exempt(r) {
		return answer{}
	}
	object, errs, err := manifest.Decode(r.Object.Raw)
	if err != nil {
		return unreadable(err)
	}
	if object == nil {
		return invalid(r, errs, nil)
	}
	before, err := json.Marshal(object)
	if err != nil {
		return unable(err)
	}
	review := s.catalog.Default(object)
	rules := s.catalog.Review(object, oldOf(r))
	if all := manifest.Beside(errs, rules.Errors); len(all) > 0 {
		return invalid(r, all, manifest.WarningsBeside(errs, append(review.Warnings, rules.Warnings...)))
	}
	return patched(r.Object.Raw, json.RawMessage(before), object, review.Warnings)
}

// validate refuses what breaks rules.
func (s *Server) validate(_ context.Context, r *admissionv1.AdmissionRequest) answer {
	if r.Operation == admissionv1.Delete {
		return s.validateDelete(r)
	}
	if !isWritten(r) || exempt(r) {
		return answer{}
	}
	object, errs, err := manifest.Decode(r.Object.Raw)
	if err != nil {
		return unreadable(err)
	}
	if object == nil {
		return invalid(r, errs, nil)
	}
	review := s.catalog.Review(object, oldOf(r))
	review.Errors, review.Warnings = manifest.Beside(errs, review.Errors), manifest.WarningsBeside(errs, review.Warnings)
	return judged(r, review)
}

// validateDelete refuses to delete what is in use. What does not decode holds
// nothing, and what is being deleted already stays until it holds nothing.
func (s *Server) validateDelete(r *admissionv1.AdmissionRequest) answer {
	old := oldOf(r)
	if old == nil || old.GetDeletionTimestamp() != nil {
		return answer{}
	}
	return judged(r, s.catalog.ReviewDelete(old))
}

func judged(r *admissionv1.AdmissionRequest, review policy.Review) answer {
	if !review.OK() {
		return invalid(r, review.Errors, review.Warnings)
	}
	return answer{warnings: review.Warnings}
}

// isWritten says whether a request writes an object, and not a subresource of one.
func isWritten(r *admissionv1.AdmissionRequest) bool {
	return r.SubResource == "" && (r.Operation == admissionv1.Create || r.Operation == admissionv1.Update)
}

// oldOf is the object as it is stored, as far as it can be understood: it may have
// been stored before there were rules.
func oldOf(r *admissionv1.AdmissionRequest) metav1.Object {
	if len(r.OldObject.Raw) == 0 {
		return nil
	}
	old, _, err := manifest.Decode(r.OldObject.Raw)
	if err != nil || old == nil {
		return nil
	}
	return old
}
