package api

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	injectKey   = "cni.spidernet.io/rdma-resource-inject"
	networksKey = "k8s.v1.cni.cncf.io/networks"
)

// TestInjection makes the pods of the requirements' webhook section.
func TestInjection(t *testing.T) {
	s := Exclusive(t)
	s.Configure(t, usual)
	c := s.Control(t, Replica{})
	s.namespace(t, "spiderpool", nil)
	s.MustApply(t, readFile(t, "testdata/acceptance/inject/network.yaml"))

	t.Run("pod", func(t *testing.T) {
		pod := s.eventuallyInjected(t, "default", template(t))
		checkInjected(t, pod)
	})
	t.Run("namespace", func(t *testing.T) {
		s.namespace(t, "ai", map[string]string{injectKey: "rdma-network"})
		plain := template(t)
		plain.Annotations = nil
		checkInjected(t, s.eventuallyInjected(t, "ai", plain))
	})
	t.Run("namespace and pod at once", func(t *testing.T) {
		plain := template(t)
		plain.Annotations = nil
		for i := range 10 {
			name := fmt.Sprintf("ai-%d", i)
			s.namespace(t, name, map[string]string{injectKey: "rdma-network"})
			checkInjected(t, s.pod(t, name, plain))
		}
	})
	t.Run("others never call", func(t *testing.T) { s.neverCalls(t) })
	t.Run("configured live", func(t *testing.T) { s.configureInjection(t) })
	t.Run("controller away", func(t *testing.T) {
		c.Stop(t)
		plain := template(t)
		plain.Annotations = nil
		if pod := s.pod(t, "default", plain); pod.Annotations[networksKey] != "" {
			t.Errorf("annotations %v", pod.Annotations)
		}
		err := s.Create(t.Context(), newPod("default", template(t)), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("a pod that asks for networks: error %v, want a refusal because nobody can inject them", err)
		}
		t.Logf("refused: %v", err)
		late := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late", Annotations: map[string]string{injectKey: "rdma-network"}}}
		if err := s.Create(t.Context(), late); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("a namespace that asks for networks: error %v, want a refusal because its pods could start without", err)
		}
	})
}

// template is the pod template of the requirements' Deployment.
func template(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "testdata/acceptance/inject/workload.yaml")), &deployment); err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.Template
}

// newPod is a pod with a name that no other has: the audit log lacks the names
// that the API server makes.
func newPod(namespace string, from corev1.PodTemplateSpec) *corev1.Pod {
	name := fmt.Sprintf("ai-app-%s", uuid.NewUUID())
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: from.Labels, Annotations: from.Annotations}
	return &corev1.Pod{ObjectMeta: meta, Spec: from.Spec}
}

func (s *Server) pod(t *testing.T, namespace string, from corev1.PodTemplateSpec) *corev1.Pod {
	t.Helper()
	pod := newPod(namespace, from)
	if err := s.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// eventuallyInjected makes pods until one has networks: the API server has to
// know of the webhook, and the webhook of the networks.
func (s *Server) eventuallyInjected(t *testing.T, namespace string, from corev1.PodTemplateSpec) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	Eventually(t, func() string {
		pod = newPod(namespace, from)
		if err := s.Create(t.Context(), pod); err != nil {
			return err.Error()
		}
		var networks []any
		_ = json.Unmarshal([]byte(pod.Annotations[networksKey]), &networks)
		if len(networks) < 8 {
			return fmt.Sprintf("8 networks in %s: %q", pod.Name, pod.Annotations[networksKey])
		}
		return ""
	})
	return pod
}

// eventuallyLeft makes pods until one is left as it is.
func (s *Server) eventuallyLeft(t *testing.T, namespace string, from corev1.PodTemplateSpec) {
	t.Helper()
	Eventually(t, func() string {
		pod := newPod(namespace, from)
		if err := s.Create(t.Context(), pod); err != nil {
			return err.Error()
		}
		if got := pod.Annotations[networksKey]; got != "" {
			return "a pod without networks, not " + got
		}
		return ""
	})
}

// checkInjected wants what the requirements print.
func checkInjected(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	var got []map[string]any
	if err := json.Unmarshal([]byte(pod.Annotations[networksKey]), &got); err != nil {
		t.Fatalf("%q: %v", pod.Annotations[networksKey], err)
	}
	var want []map[string]any
	limits := map[string]string{}
	for rail := 1; rail <= 8; rail++ {
		want = append(want, map[string]any{"name": fmt.Sprintf("gpu%d-sriov", rail), "namespace": "spiderpool"})
		limits[fmt.Sprintf("spidernet.io/gpu%drdma", rail)] = "1"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	for what, list := range map[string]corev1.ResourceList{
		"limits": pod.Spec.Containers[0].Resources.Limits, "requests": pod.Spec.Containers[0].Resources.Requests,
	} {
		has := map[string]string{}
		for name, quantity := range list {
			has[string(name)] = quantity.String()
		}
		if diff := cmp.Diff(limits, has); diff != "" { // the API server makes requests of limits
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// neverCalls makes pods that have nothing to do with us, and wants no mutating
// webhook in the audit log of any of them, and one in that of a pod that has.
func (s *Server) neverCalls(t *testing.T) {
	t.Helper()
	plain := template(t)
	plain.Annotations = map[string]string{"ipam.spidernet.io/ippools": `[{"interface":"eth0","ipv4":["v4-81"]}]`, networksKey: "spiderpool/gpu1-sriov"}
	for range 5 {
		s.pod(t, "default", plain)
	}
	asking := s.pod(t, "default", template(t))
	var others int
	for _, w := range s.Writes(t, "admin") {
		name, isPod := strings.CutPrefix(w.Object, "pods/default/")
		if !isPod || w.Verb != "create" || !w.Done() {
			continue
		}
		var pod corev1.Pod
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod); err != nil {
			t.Fatal(err)
		}
		asks := pod.Annotations[injectKey] != ""
		if asks != (len(w.Webhooks) > 0) {
			t.Errorf("%s: asks for networks: %v, webhooks called: %v", name, asks, w.Webhooks)
		}
		if !asks {
			others++
		}
		if name == asking.Name && len(w.Webhooks) == 0 {
			t.Errorf("%s: no webhook in the audit log: this test cannot fail", name)
		}
	}
	if others < 5 {
		t.Errorf("%d pods that ask for nothing, there were 5", others)
	}
}

// configureInjection changes the ConfigMap and nothing else.
func (s *Server) configureInjection(t *testing.T) {
	t.Helper()
	s.namespace(t, "team-b", nil)
	steps := []struct {
		config         string
		injected, left string
	}{
		{"podResourceInject: {enabled: true, namespacesExclude: [default]}", "team-b", "default"},
		{"podResourceInject: {enabled: true, namespacesExclude: [], namespacesInclude: [default]}", "default", "team-b"},
		{"podResourceInject: {enabled: true, namespacesExclude: [], namespacesInclude: []}", "team-b", ""},
		{"podResourceInject: {enabled: false}", "", "default"},
		{usual, "default", "kube-system"},
	}
	for _, step := range steps {
		t.Log(step.config)
		s.Configure(t, step.config)
		if step.left != "" {
			s.eventuallyLeft(t, step.left, template(t))
		}
		if step.injected != "" {
			checkInjected(t, s.eventuallyInjected(t, step.injected, template(t)))
		}
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
