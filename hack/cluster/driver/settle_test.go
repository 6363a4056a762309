package driver

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"railhead/hack/cluster/plan"
)

// TestSetPodNetworks wants a node's pod networks to be as planned, whether or
// not the kubelet was first to make the node.
func TestSetPodNetworks(t *testing.T) {
	t.Parallel()
	p, err := plan.New(plan.Options{Nodes: 1, IPv4: true, IPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string][]runtime.Object{
		"node is new":            nil,
		"kubelet was first":      {node("node1", "")},
		"kubelet told how it is": {node("node1", corev1.ConditionTrue)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(there...)
			if err := setPodNetworks(t.Context(), client, p.Nodes[0]); err != nil {
				t.Fatal(err)
			}
			got, err := client.CoreV1().Nodes().Get(t.Context(), "node1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := corev1.NodeSpec{PodCIDR: "10.244.1.0/24", PodCIDRs: []string{"10.244.1.0/24", "fd00:244:0:1::/64"}}
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Errorf("node (-want +got):\n%s", diff)
			}
			if isReady(got) != (name == "kubelet told how it is") {
				t.Errorf("conditions %v: not as before", got.Status.Conditions)
			}
		})
	}
}

// node is one with a condition, or with none.
func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready},
		}
	}
	return n
}

func TestCountReady(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(
		node("node1", corev1.ConditionTrue), node("node2", corev1.ConditionFalse),
		node("node3", corev1.ConditionUnknown), node("node4", ""), node("node5", corev1.ConditionTrue))
	if got, err := countReady(t.Context(), client); err != nil || got != 2 {
		t.Errorf("%d, %v, want 2", got, err)
	}
}

func TestAwaitNamespace(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	waited := make(chan error, 1)
	go func() { waited <- awaitNamespace(t.Context(), client, "kube-system") }()
	eventually(t, "it has asked", func() bool { return len(client.Actions()) > 0 })
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), system, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := returns(t, "awaitNamespace", func() error { return <-waited }); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := returns(t, "awaitNamespace", func() error { return awaitNamespace(ended, client, "none") })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "namespace none") || strings.Contains(err.Error(), "%!") {
		t.Errorf("error %v, want %v, with the namespace", err, context.Canceled)
	}
}
