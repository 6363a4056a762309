package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/controller"
	"railhead/internal/policy"
	"railhead/internal/webhook/registration"
)

// objects decodes the manifest. Fields that Kubernetes does not know are errors.
func objects(t *testing.T) (all []runtime.Object) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "railhead-controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		all = append(all, object)
	}
	return all
}

// only returns the one object of a type that the manifest has.
func only[T runtime.Object](t *testing.T) (found T) {
	t.Helper()
	count := 0
	for _, object := range objects(t) {
		if o, ok := object.(T); ok {
			found, count = o, count+1
		}
	}
	if count != 1 {
		t.Fatalf("%d objects of type %T, want one", count, found)
	}
	return found
}

// TestNamespaces wants all objects where the controller looks for its own, or in
// kube-system to read there.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	const home = "railhead-system" // of deploy/namespace.yaml
	for _, object := range objects(t) {
		m, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		switch m.GetNamespace() {
		case "", home:
		case metav1.NamespaceSystem:
			if role, ok := object.(*rbacv1.Role); ok && !slices.Equal(role.Rules[0].Verbs, []string{"get", "list", "watch"}) {
				t.Errorf("in %s it may %q", m.GetNamespace(), role.Rules[0].Verbs)
			}
		default:
			t.Errorf("%T %s is in namespace %s", object, m.GetName(), m.GetNamespace())
		}
	}
}

// TestContainer wants the program to take its arguments, probes and the Service
// to reach what it serves, and no privilege at all.
func TestContainer(t *testing.T) {
	t.Parallel()
	deployment := only[*appsv1.Deployment](t)
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if diff := cmp.Diff([]string{"/usr/local/bin/railhead-controller"}, container.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	cmd := rootCommand()
	if err := cmd.ParseFlags(container.Args); err != nil {
		t.Error(err)
	}
	for flag, port := range map[string]string{"webhook-listen": "webhook", "metrics-listen": "metrics", "health-listen": "health"} {
		at := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
		if want := cmd.Flags().Lookup(flag).Value.String(); at < 0 || want != fmt.Sprintf(":%d", container.Ports[at].ContainerPort) {
			t.Errorf("it listens on %s for %s, and the ports are %+v", want, port, container.Ports)
		}
	}
	if got := cmd.Flags().Lookup("owner-cluster-role").Value.String(); got != only[*rbacv1.ClusterRole](t).Name {
		t.Errorf("the webhook configurations go with ClusterRole %s", got)
	}
	if container.ReadinessProbe.HTTPGet.Path != "/readyz" || container.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("probes %v and %v", container.ReadinessProbe, container.LivenessProbe)
	}
	wantPod := &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if diff := cmp.Diff(wantPod, pod.SecurityContext); diff != "" {
		t.Errorf("the pod's security (-want +got):\n%s", diff)
	}
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, container.SecurityContext); diff != "" {
		t.Errorf("the container's security (-want +got):\n%s", diff)
	}
	if pod.HostNetwork || pod.HostPID || len(pod.Volumes) > 0 {
		t.Error("it sees something of its node")
	}
}

// TestReplicas wants the second replica to survive what may be evicted, and
// Service, budget and affinity to mean the Deployment's pods.
func TestReplicas(t *testing.T) {
	t.Parallel()
	deployment, service, budget := only[*appsv1.Deployment](t), only[*corev1.Service](t), only[*policyv1.PodDisruptionBudget](t)
	pods := labels.Set(deployment.Spec.Template.Labels)
	if *deployment.Spec.Replicas != 2 || budget.Spec.MinAvailable.IntValue() != 1 {
		t.Errorf("%d replicas of which %s must stay", *deployment.Spec.Replicas, budget.Spec.MinAvailable)
	}
	if service.Name != controller.DefaultService || !labels.SelectorFromSet(service.Spec.Selector).Matches(pods) {
		t.Errorf("Service %s selects %v", service.Name, service.Spec.Selector)
	}
	affinity := deployment.Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	for name, selector := range map[string]*metav1.LabelSelector{
		"Deployment": deployment.Spec.Selector, "budget": budget.Spec.Selector, "affinity": affinity[0].PodAffinityTerm.LabelSelector,
	} {
		if s, err := metav1.LabelSelectorAsSelector(selector); err != nil || !s.Matches(pods) {
			t.Errorf("the selector of the %s is %v, and its error %v", name, selector, err)
		}
	}
	if port := service.Spec.Ports[0]; port.Port != 443 || port.TargetPort.StrVal != "webhook" {
		t.Errorf("the Service's port %+v", port)
	}
}

// TestSettings wants the ConfigMap to be where it is looked for, and to say what
// is in force without it.
func TestSettings(t *testing.T) {
	t.Parallel()
	configMap := only[*corev1.ConfigMap](t)
	if configMap.Name != policy.ConfigMapName {
		t.Errorf("it is named %s", configMap.Name)
	}
	got, err := policy.ParseConfig([]byte(configMap.Data[policy.ConfigMapKey]))
	if err != nil {
		t.Fatal(err)
	}
	if want := policy.DefaultConfig(); !reflect.DeepEqual(normal(want), normal(got)) {
		t.Errorf("(-default +manifest):\n%s", cmp.Diff(normal(want), normal(got)))
	}
}

// normal has no difference between an empty list and none.
func normal(c policy.Config) policy.Config {
	if len(c.PodResourceInject.NamespacesInclude) == 0 {
		c.PodResourceInject.NamespacesInclude = nil
	}
	return c
}

// TestRightsOnOurs wants objects that users write to be patched, so that fields
// that this version does not know stay, and of webhook configurations no others
// to be seen.
func TestRightsOnOurs(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, rule := range only[*rbacv1.ClusterRole](t).Rules {
		finalizers := slices.ContainsFunc(rule.Resources, func(r string) bool { return strings.HasSuffix(r, "/finalizers") })
		switch {
		case slices.Contains(rule.APIGroups, v2beta1.GroupVersion.Group) && !finalizers:
			if seen++; slices.Contains(rule.Verbs, "update") {
				t.Errorf("it may update %q", rule.Resources)
			}
		case slices.Contains(rule.APIGroups, "admissionregistration.k8s.io"):
			if seen++; !slices.Equal(rule.Verbs, []string{"create"}) && !slices.Equal(rule.ResourceNames, []string{registration.Name}) {
				t.Errorf("of all %q it may %q", rule.Resources, rule.Verbs)
			}
		}
	}
	if seen < 6 {
		t.Errorf("%d rules, want all of them seen", seen)
	}
}

// TestRights wants no right that is as good as all, and none to read Secrets but
// the controller's own.
func TestRights(t *testing.T) {
	t.Parallel()
	for _, object := range objects(t) {
		var rules []rbacv1.PolicyRule
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules = role.Rules
		}
		for _, rule := range rules {
			if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.APIGroups, "*") {
				t.Errorf("a rule for everything: %v", rule)
			}
			if slices.Contains(rule.Resources, "*") && !slices.Equal(rule.Verbs, []string{"get"}) {
				t.Errorf("a rule for all resources that lets more than read: %v", rule)
			}
			secrets := slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.Verbs, []string{"create"})
			if secrets && !slices.Equal(rule.ResourceNames, []string{"railhead-controller-certificate"}) {
				t.Errorf("a rule for Secrets of others: %v", rule)
			}
		}
	}
	binding := only[*rbacv1.ClusterRoleBinding](t)
	account := only[*corev1.ServiceAccount](t)
	if binding.Subjects[0].Name != account.Name || only[*appsv1.Deployment](t).Spec.Template.Spec.ServiceAccountName != account.Name {
		t.Errorf("the rights are %v's, and the account is %s", binding.Subjects, account.Name)
	}
}
