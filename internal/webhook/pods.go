package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"railhead/internal/policy/injection"
)

// inject gives a new pod the networks that it or its namespace asks for.
func (s *Server) inject(ctx context.Context, r *admissionv1.AdmissionRequest) answer {
	if r.Kind.Kind != "Pod" || r.Operation != admissionv1.Create || r.SubResource != "" {
		return answer{}
	}
	var pod corev1.Pod
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.Object.Raw, &pod); err != nil {
		return unreadable(fmt.Errorf("decode a Pod: %w", err))
	}
	pod.Namespace = r.Namespace
	namespace, err := s.annotationsFor(ctx, &pod)
	if err != nil {
		return unable(err)
	}
	before := pod.DeepCopy()
	result, err := injection.Inject(&pod, namespace, s.catalog.NetworksFor, s.catalog.InjectedValues)
	if wrong := (*field.Error)(nil); errors.As(err, &wrong) {
		return invalid(r, field.ErrorList{wrong}, result.Warnings)
	}
	if err != nil {
		return unable(err)
	}
	if !result.Changed {
		return answer{warnings: result.Warnings}
	}
	return patched(r.Object.Raw, before, &pod, result.Warnings)
}

// annotationsFor are the annotations of a pod's namespace, if they matter.
func (s *Server) annotationsFor(ctx context.Context, pod *corev1.Pod) (map[string]string, error) {
	if injection.Asks(pod.Annotations) {
		return nil, nil
	}
	annotations, err := s.namespaces.Annotations(ctx, pod.Namespace)
	if err != nil {
		return nil, fmt.Errorf("read the annotations of namespace %s: %w", pod.Namespace, err)
	}
	return annotations, nil
}

// patched admits an object with the change from before to after.
func patched(sent []byte, before, after any, warnings []string) answer {
	was, err := json.Marshal(before)
	if err != nil {
		return unable(err)
	}
	is, err := json.Marshal(after)
	if err != nil {
		return unable(err)
	}
	operations, err := patch(sent, was, is)
	if err != nil {
		return unable(err)
	}
	return answer{patch: operations, warnings: warnings}
}
