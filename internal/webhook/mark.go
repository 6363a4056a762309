package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// mark labels a namespace that carries an inject annotation, and no other: webhooks
// select namespaces by label, and so the API server asks for networks for each
// pod from this very write on.
func (s *Server) mark(_ context.Context, r *admissionv1.AdmissionRequest) answer {
	if r.Kind.Kind != "Namespace" || !isWritten(r) {
		return answer{}
	}
	var namespace metav1.PartialObjectMetadata
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.Object.Raw, &namespace); err != nil {
		return unreadable(fmt.Errorf("decode a Namespace: %w", err))
	}
	before := namespace.DeepCopy()
	delete(namespace.Labels, v2beta1.LabelInjection)
	for _, key := range policy.InjectKeys() {
		if _, asks := namespace.Annotations[key]; asks {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, v2beta1.LabelInjection, "true")
		}
	}
	return patched(r.Object.Raw, before, &namespace, nil)
}
