package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/webhook/registration"
)

// states are settings of the controller, by name.
func states() map[string]registration.State {
	service := registration.Endpoint{Namespace: "railhead-system", Service: "railhead-controller"}
	inject := policy.DefaultConfig().PodResourceInject
	inject.Enabled = true
	some := inject
	some.NamespacesInclude = []string{"ai", "ml", "spiderpool"}
	return map[string]registration.State{
		"disabled":  {Endpoint: service, Annotated: []string{"ai"}},
		"enabled":   {Endpoint: service, Inject: inject},
		"annotated": {Endpoint: service, Inject: inject, Annotated: []string{"ml", "ai", "kube-system", "spiderpool"}},
		"included":  {Endpoint: registration.Endpoint{URL: "https://10.0.0.1:9443"}, Inject: some, Annotated: []string{"ai", "other", "spiderpool"}},
	}
}

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
	remove = admissionregistrationv1.Delete
)

// apiRequest is one that an API server decides to send, or not.
type apiRequest struct {
	operation                admissionregistrationv1.OperationType
	group, version, resource string
	namespace                string
	marked                   bool // the namespace, by label
	object, old              map[string]any
}

// hook is what the two kinds of webhooks have in common.
type hook struct {
	configuration string
	name, path    string
	failure       admissionregistrationv1.FailurePolicyType
	rules         []admissionregistrationv1.RuleWithOperations
	namespaces    *metav1.LabelSelector
	conditions    []admissionregistrationv1.MatchCondition
}

func hooksOf(s registration.State) []hook {
	var hooks []hook
	mutating, validating := registration.Desired(s)
	for _, w := range mutating.Webhooks {
		hooks = append(hooks, hook{"mutating", w.Name, pathOf(w.ClientConfig), *w.FailurePolicy, w.Rules, w.NamespaceSelector, w.MatchConditions})
	}
	for _, w := range validating.Webhooks {
		hooks = append(hooks, hook{"validating", w.Name, pathOf(w.ClientConfig), *w.FailurePolicy, w.Rules, w.NamespaceSelector, w.MatchConditions})
	}
	return hooks
}

func pathOf(c admissionregistrationv1.WebhookClientConfig) string {
	if c.URL != nil {
		return *c.URL
	}
	return *c.Service.Path
}

// matches says whether the API server sends a request to a webhook, as it decides it.
func (h hook) matches(t *testing.T, r apiRequest) bool {
	t.Helper()
	ruled := slices.ContainsFunc(h.rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.Operations, r.operation) && slices.Contains(rule.APIGroups, r.group) &&
			slices.Contains(rule.APIVersions, r.version) && slices.Contains(rule.Resources, r.resource)
	})
	if !ruled {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(h.namespaces)
	if err != nil {
		t.Fatalf("%s: %v", h.name, err)
	}
	of := labels.Set{corev1.LabelMetadataName: r.namespace}
	if r.marked {
		of[v2beta1.LabelInjection] = "true"
	}
	if r.namespace != "" && !selector.Matches(of) {
		return false
	}
	for _, c := range h.conditions {
		if !evaluate(t, c.Expression, r) {
			return false
		}
	}
	return true
}

// evaluate evaluates an expression of CEL with the variables that match conditions
// have.
func evaluate(t *testing.T, expression string, r apiRequest) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		t.Fatalf("%s is a %s, want a bool", expression, ast.OutputType())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	var object, old any
	if r.object != nil {
		object = r.object
	}
	if r.old != nil {
		old = r.old
	}
	out, _, err := program.Eval(map[string]any{"object": object, "oldObject": old, "request": map[string]any{"operation": string(r.operation)}})
	if err != nil {
		t.Fatalf("%s of %v: %v", expression, r.object, err)
	}
	return out.Value() == true
}

// podObject is a pod with annotations and a spec.
func podObject(annotations, spec map[string]any) map[string]any {
	metadata := map[string]any{"name": "p"}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	if spec == nil {
		spec = map[string]any{}
	}
	return map[string]any{"metadata": metadata, "spec": spec}
}

func podRequest(namespace string, object map[string]any) apiRequest {
	return apiRequest{operation: create, version: "v1", resource: "pods", namespace: namespace, object: object}
}

// TestPods: which webhooks the creation of a pod calls, in the state "annotated".
func TestPods(t *testing.T) {
	const asking, namespaced, host = "pods.railhead.io", "namespaced.pods.railhead.io", "host-network.pods.railhead.io"
	const unmarked = "unmarked."
	plain := podObject(nil, nil)
	others := podObject(map[string]any{"example.com/x": "y"}, nil)
	rdma := podObject(map[string]any{v2beta1.AnnotationInjectRDMA: "x"}, nil)
	network := podObject(map[string]any{v2beta1.AnnotationInjectNetwork: "x"}, nil)
	hostNetwork := podObject(nil, map[string]any{"hostNetwork": true})
	noHostNetwork := podObject(nil, map[string]any{"hostNetwork": false})
	hostAsking := podObject(map[string]any{v2beta1.AnnotationInjectRDMA: "x"}, map[string]any{"hostNetwork": true})
	for _, tt := range []struct {
		name      string
		namespace string
		pod       map[string]any
		want      []string
	}{
		{"plain", "default", plain, nil},
		{"of others", "default", others, nil},
		{"rdma", "default", rdma, []string{asking}},
		{"network", "default", network, []string{asking}},
		{"on the host's network, asking", "default", hostAsking, []string{asking}},
		{"excluded", "kube-system", rdma, nil},
		{"excluded by configuration", "spiderpool", rdma, nil},
		{"excluded and annotated", "spiderpool", plain, nil},
		{"annotated", "ai", plain, []string{unmarked + namespaced}},
		{"annotated, others", "ml", others, []string{unmarked + namespaced}},
		{"annotated, rdma", "ai", rdma, []string{asking}},
		{"annotated, host network", "ai", hostNetwork, []string{unmarked + host}},
		{"annotated, no host network", "ai", noHostNetwork, []string{unmarked + namespaced}},
		{"marked", "marked", plain, []string{namespaced}},
		{"marked, rdma", "marked", rdma, []string{asking}},
		{"marked, host network", "marked", hostNetwork, []string{host}},
		{"marked and annotated", "ai, marked", plain, []string{namespaced}},
		{"marked and excluded", "spiderpool, marked", plain, nil},
	} {
		var got []string
		for _, h := range hooksOf(states()["annotated"]) {
			r := podRequest(tt.namespace, tt.pod)
			r.namespace, r.marked = strings.CutSuffix(tt.namespace, ", marked")
			r.marked = r.marked || tt.namespace == "marked"
			if h.matches(t, r) {
				got = append(got, h.name)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestOutage: while no replica answers, all fails that matches a webhook with
// failurePolicy Fail. Those may be writes of our kinds, of namespaces that begin or cease to ask, and pods that ask for
// networks or whose namespace does and that are not on the host's network.
func TestOutage(t *testing.T) {
	ours := []string{"spiderippools", "spidersubnets", "spiderreservedips", "spidercoordinators", "spidermultusconfigs"}
	for name, state := range states() {
		for _, h := range hooksOf(state) {
			if h.failure != admissionregistrationv1.Fail {
				continue
			}
			for _, r := range h.rules {
				isOurs := slices.Equal(r.APIGroups, []string{v2beta1.GroupVersion.Group}) && !slices.ContainsFunc(r.Resources, func(resource string) bool { return !slices.Contains(ours, resource) })
				isPods := slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.Resources, []string{"pods"}) && slices.Equal(r.Operations, []admissionregistrationv1.OperationType{create})
				isNamespaces := slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.Resources, []string{"namespaces"}) // see TestMarking
				if !isOurs && !isPods && !isNamespaces {
					t.Errorf("%s: %s fails for %+v", name, h.name, r)
				}
			}
			for _, namespace := range []string{"default", "kube-system", "spiderpool", "railhead-system", "ai", "ml", "other"} {
				for _, asks := range []bool{false, true} {
					for _, onHost := range []bool{false, true} {
						annotations := map[string]any{"example.com/x": "y"}
						if asks {
							annotations[v2beta1.AnnotationInjectNetwork] = "x"
						}
						object := podObject(annotations, map[string]any{"hostNetwork": onHost})
						annotated := slices.Contains(state.Annotated, namespace) && !slices.Contains(state.Inject.NamespacesExclude, namespace) && namespace != "kube-system"
						if h.matches(t, podRequest(namespace, object)) && !asks && (!annotated || onHost) {
							t.Errorf("%s: %s stops a pod in %s that does not use Railhead, on the host's network: %t", name, h.name, namespace, onHost)
						}
					}
				}
			}
		}
	}
}

// TestMarking: of namespaces, the API server tells us of those that begin or cease
// to ask for networks, and so of none that does not use Railhead.
func TestMarking(t *testing.T) {
	asks := map[string]any{"annotations": map[string]any{v2beta1.AnnotationInjectRDMA: "x"}}
	others := map[string]any{"annotations": map[string]any{"example.com/x": "y"}, "labels": map[string]any{v2beta1.LabelInjection: "true"}}
	bare := map[string]any{}
	for _, tt := range []struct {
		name     string
		old, now map[string]any
		want     bool
	}{
		{"made plain", nil, bare, false},
		{"made with what is of others", nil, others, false},
		{"made asking", nil, asks, true},
		{"stays plain", others, bare, false},
		{"goes on asking", asks, asks, false},
		{"begins to ask", bare, asks, true},
		{"begins to ask, of others before", others, asks, true},
		{"ceases to ask", asks, others, true},
		{"ceases to ask and goes", asks, map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}, false},
	} {
		r := apiRequest{operation: create, version: "v1", resource: "namespaces", object: map[string]any{"metadata": tt.now}}
		if tt.old != nil {
			r.operation, r.old = update, map[string]any{"metadata": tt.old}
		}
		var got bool
		for _, h := range hooksOf(states()["enabled"]) {
			got = got || h.matches(t, r)
		}
		if got != tt.want {
			t.Errorf("%s: told of it: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// TestDeleting: a finalizer can be removed while no replica answers.
func TestDeleting(t *testing.T) {
	object := func(metadata map[string]any) map[string]any { return map[string]any{"metadata": metadata} }
	pool := func(operation admissionregistrationv1.OperationType, o map[string]any) apiRequest {
		return apiRequest{operation: operation, group: v2beta1.GroupVersion.Group, version: v2beta1.GroupVersion.Version, resource: "spiderippools", object: o}
	}
	for _, tt := range []struct {
		name string
		r    apiRequest
		want []string
	}{
		{"created", pool(create, object(map[string]any{})), []string{"mutating", "validating"}},
		{"updated", pool(update, object(map[string]any{})), []string{"mutating", "validating"}},
		{"updated while it is deleted", pool(update, object(map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})), nil},
		{"deleted", pool(remove, nil), []string{"validating"}},
	} {
		var got []string
		for _, h := range hooksOf(states()["enabled"]) {
			if h.matches(t, tt.r) {
				got = append(got, h.configuration)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
