package registration

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	sriovv1 "railhead/api/sriovnetwork/v1"
	"railhead/internal/policy"
)

// Name is that of both configurations.
const Name = "railhead"

const (
	kubeSystem = metav1.NamespaceSystem
	// webhookPort is where the API server calls a Service that says no port.
	webhookPort = 443
)

// Endpoint is where the API server finds the webhooks: a Service, or a URL for a
// controller outside the cluster.
type Endpoint struct {
	Namespace, Service string
	Port               int32  // of the Service; 0 is 443
	URL                string // "https://host:port"; the Service then does not count
}

// State is what the configurations follow from.
type State struct {
	Endpoint Endpoint
	Bundle   []byte // PEM of the CAs that sign our certificate
	Inject   policy.PodResourceInject
	// Annotated are the namespaces that have networks injected into all their pods, in
	// any order. Those that are not marked by LabelInjection are selected by name.
	Annotated []string
}

// Desired returns both configurations with every field that the API server would
// fill in, so that they can be compared with what it has.
//
// What fails while no replica answers is writing our own objects, and creating
// pods that ask for networks themselves or, unless they are on the host's network,
// by their namespace. Objects that are being deleted are never held up.
func Desired(s State) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta(), Webhooks: mutatingWebhooks(s)}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta(), Webhooks: validatingWebhooks(s)}
	return mutating, validating
}

func meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: Name, Labels: map[string]string{
		"app.kubernetes.io/name":       "railhead",
		"app.kubernetes.io/managed-by": "railhead-controller",
	}}
}

func mutatingWebhooks(s State) []admissionregistrationv1.MutatingWebhook {
	objects := mutating(s, "objects.railhead.io", pathMutate, admissionregistrationv1.Fail)
	objects.Rules = []admissionregistrationv1.RuleWithOperations{rule(v2beta1.GroupVersion, objectsWithDefaults, create, update)}
	objects.MatchConditions = notBeingDeleted()
	webhooks := []admissionregistrationv1.MutatingWebhook{objects}
	if s.Inject.Enabled {
		webhooks = append(webhooks, namespaceWebhook(s))
		webhooks = append(webhooks, podWebhooks(s)...)
	}
	return webhooks
}

// namespaceWebhook marks namespaces that ask for networks in the write that has
// them ask, so that no pod can come between. While no replica answers, such a
// write fails: pods of the namespace would go without networks, and nobody be told.
func namespaceWebhook(s State) admissionregistrationv1.MutatingWebhook {
	w := mutating(s, "namespaces.railhead.io", pathNamespaces, admissionregistrationv1.Fail)
	w.Rules = []admissionregistrationv1.RuleWithOperations{rule(corev1.SchemeGroupVersion, []string{"namespaces"}, create, update)}
	w.MatchConditions = append(notBeingDeleted(), beginsOrCeasesToAsk())
	return w
}

// podWebhooks are for pods that ask for networks, and for all pods of namespaces
// that do.
func podWebhooks(s State) []admissionregistrationv1.MutatingWebhook {
	excluded := append([]string{kubeSystem}, s.Inject.NamespacesExclude...)
	asking := podWebhook(s, "pods.railhead.io", admissionregistrationv1.Fail, askingThemselves())
	asking.NamespaceSelector = namespaces(metav1.LabelSelectorOpNotIn, excluded)
	if len(s.Inject.NamespacesInclude) > 0 {
		asking.NamespaceSelector.MatchExpressions = append(asking.NamespaceSelector.MatchExpressions,
			namespaces(metav1.LabelSelectorOpIn, s.Inject.NamespacesInclude).MatchExpressions...)
	}
	webhooks := []admissionregistrationv1.MutatingWebhook{asking}

	marked := asking.NamespaceSelector.DeepCopy()
	marked.MatchExpressions = append(marked.MatchExpressions, label(metav1.LabelSelectorOpExists))
	webhooks = append(webhooks, namespacedWebhooks(s, "", marked)...)

	annotated := slices.DeleteFunc(slices.Clone(s.Annotated), func(name string) bool {
		return slices.Contains(excluded, name) ||
			len(s.Inject.NamespacesInclude) > 0 && !slices.Contains(s.Inject.NamespacesInclude, name)
	})
	if len(annotated) == 0 {
		return webhooks
	}
	// Those that asked before we were there.
	unmarked := namespaces(metav1.LabelSelectorOpIn, annotated)
	unmarked.MatchExpressions = append(unmarked.MatchExpressions, label(metav1.LabelSelectorOpDoesNotExist))
	return append(webhooks, namespacedWebhooks(s, "unmarked.", unmarked)...)
}

// namespacedWebhooks are for the pods of namespaces that ask for networks.
func namespacedWebhooks(s State, prefix string, selector *metav1.LabelSelector) []admissionregistrationv1.MutatingWebhook {
	webhooks := []admissionregistrationv1.MutatingWebhook{
		podWebhook(s, prefix+"namespaced.pods.railhead.io", admissionregistrationv1.Fail, notAskingThemselves(), notOnHostNetwork()),
		// Only to be warned that they get no networks.
		podWebhook(s, prefix+"host-network.pods.railhead.io", admissionregistrationv1.Ignore, notAskingThemselves(), onHostNetwork()),
	}
	for i := range webhooks {
		webhooks[i].NamespaceSelector = selector
	}
	return webhooks
}

// label selects namespaces by their mark.
func label(operator metav1.LabelSelectorOperator) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: v2beta1.LabelInjection, Operator: operator}
}

func podWebhook(s State, name string, failure admissionregistrationv1.FailurePolicyType, conditions ...admissionregistrationv1.MatchCondition) admissionregistrationv1.MutatingWebhook {
	w := mutating(s, name, pathPods, failure)
	w.Rules = []admissionregistrationv1.RuleWithOperations{rule(corev1.SchemeGroupVersion, []string{"pods"}, create)}
	w.MatchConditions = conditions
	// Containers that other webhooks add may ask for our resources. Injection done
	// again changes nothing.
	w.ReinvocationPolicy = new(admissionregistrationv1.IfNeededReinvocationPolicy)
	return w
}

func validatingWebhooks(s State) []admissionregistrationv1.ValidatingWebhook {
	objects := validating(s, "objects.railhead.io", admissionregistrationv1.Fail)
	objects.Rules = []admissionregistrationv1.RuleWithOperations{
		rule(v2beta1.GroupVersion, objectsWithDefaults, create, update),
		rule(v2beta1.GroupVersion, objectsInUse, remove),
	}
	// The agents' own objects, and those that users of other networks write too.
	others := validating(s, "others.railhead.io", admissionregistrationv1.Ignore)
	others.Rules = []admissionregistrationv1.RuleWithOperations{
		rule(v2beta1.GroupVersion, []string{"spiderendpoints"}, create, update),
		rule(cniv1.GroupVersion, []string{"network-attachment-definitions"}, create, update),
		rule(sriovv1.GroupVersion, []string{"sriovnetworknodepolicies"}, create, update),
	}
	return []admissionregistrationv1.ValidatingWebhook{objects, others}
}

// namespaces selects namespaces by name.
func namespaces(operator metav1.LabelSelectorOperator, names []string) *metav1.LabelSelector {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: operator, Values: names},
	}}
}
