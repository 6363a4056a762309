package registration

import (
	"cmp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Paths that internal/webhook answers.
const (
	pathMutate     = "/mutate"
	pathValidate   = "/validate"
	pathPods       = "/mutate--v1-pod"
	pathNamespaces = "/mutate--v1-namespace"
)

// timeoutSeconds is how long the API server waits for an answer, and so for
// a replica that hangs before it asks the next one.
const timeoutSeconds = 5

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
	remove = admissionregistrationv1.Delete
)

// mutating returns a webhook for no request yet.
func mutating(s State, name, path string, failure admissionregistrationv1.FailurePolicyType) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    name,
		ClientConfig:            clientConfig(s, path),
		FailurePolicy:           new(failure),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(timeoutSeconds)),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      new(admissionregistrationv1.NeverReinvocationPolicy),
	}
}

// validating returns a webhook for no request yet.
func validating(s State, name string, failure admissionregistrationv1.FailurePolicyType) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    name,
		ClientConfig:            clientConfig(s, pathValidate),
		FailurePolicy:           new(failure),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		NamespaceSelector:       &metav1.LabelSelector{},
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(timeoutSeconds)),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         notBeingDeleted(),
	}
}

func clientConfig(s State, path string) admissionregistrationv1.WebhookClientConfig {
	c := admissionregistrationv1.WebhookClientConfig{CABundle: s.Bundle}
	if s.Endpoint.URL != "" {
		c.URL = new(s.Endpoint.URL + path)
		return c
	}
	c.Service = &admissionregistrationv1.ServiceReference{
		Namespace: s.Endpoint.Namespace,
		Name:      s.Endpoint.Service,
		Path:      new(path),
		Port:      new(cmp.Or(s.Endpoint.Port, webhookPort)),
	}
	return c
}

func rule(group schema.GroupVersion, resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group.Group}, APIVersions: []string{group.Version}, Resources: resources,
			Scope: new(admissionregistrationv1.AllScopes),
		},
	}
}
