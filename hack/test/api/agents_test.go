package api

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

const agentAccount = "railhead-agent"

// node makes a Node.
func (s *Server) node(t *testing.T, name string) {
	t.Helper()
	if err := s.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// agentRights lets agents write everything of theirs, and that of others: what
// keeps them from it is under test.
func (s *Server) agentRights(t *testing.T) {
	t.Helper()
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: agentAccount}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: testRole + agentAccount}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"addressleases", "addressleases/status"}, Verbs: all},
			{APIGroups: []string{v2beta1.GroupVersion.Group}, Resources: []string{"spiderendpoints"}, Verbs: all},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: testRole + agentAccount},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: testRole + agentAccount},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: agentAccount}},
		},
	} {
		if err := s.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// agentOn is a client with the token that the kubelet would mount into the pod
// of an agent on a node; without a node, with one that is bound to no pod.
func (s *Server) agentOn(t *testing.T, node string) client.Client {
	t.Helper()
	s.agentRights(t)
	request := &authenticationv1.TokenRequest{}
	if node != "" {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "railhead-agent-" + node},
			Spec: corev1.PodSpec{
				NodeName: node, ServiceAccountName: agentAccount,
				Containers: []corev1.Container{{Name: "agent", Image: "x"}},
			},
		}
		if err := s.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: agentAccount}}
	if err := s.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken, config.QPS = request.Status.Token, -1
	agent, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

// leaseOf is one that asks for nothing.
func leaseOf(name string) *v1alpha1.AddressLease {
	return &v1alpha1.AddressLease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AddressLeaseSpec{Session: "1"}}
}

// endpointOn is a SpiderEndpoint of a node.
func endpointOn(name, node string) *v2beta1.SpiderEndpoint {
	return &v2beta1.SpiderEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Status:     v2beta1.EndpointStatus{Current: v2beta1.EndpointAllocation{Node: node, UID: "u"}, OwnerControllerType: "Pod", OwnerControllerName: name},
	}
}

// TestAgentsWriteTheirOwn wants an agent to write the lease and the endpoints of
// the node that its token is of, and none of other nodes, whatever its role allows.
func TestAgentsWriteTheirOwn(t *testing.T) {
	s := Exclusive(t)
	s.Install(t)
	for _, name := range []string{"node1", "node2"} {
		s.node(t, name)
	}
	one, two, nowhere := s.agentOn(t, "node1"), s.agentOn(t, "node2"), s.agentOn(t, "")
	Eventually(t, func() string { // policies come into force a moment after they were made
		for _, o := range []client.Object{leaseOf("probe"), endpointOn("probe", "probe")} {
			if err := nowhere.Create(t.Context(), o, client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
				return "a refusal"
			}
		}
		return ""
	})
	second, theirs, left := leaseOf("node2"), endpointOn("b", "node2"), endpointOn("c", "")
	for _, o := range []client.Object{second, theirs, left} {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatalf("an administrator: %v", err)
		}
	}
	claimed := left.DeepCopy()
	claimed.Status.Current.Node = "node1"
	stolen := theirs.DeepCopy()
	stolen.Status.Current.Node = "node1"
	given := func() client.Object { // of node1 once claimed
		o := endpointOn("c", "node2")
		o.ResourceVersion = s.Lookup(t, left).GetResourceVersion()
		return o
	}
	steps := []struct {
		name    string
		do      func() error
		refusal string // empty: done
	}{
		{"own lease", func() error { return one.Create(t.Context(), leaseOf("node1")) }, ""},
		{"another lease", func() error { return one.Create(t.Context(), leaseOf("node3")) }, `of node "node1" may not write AddressLease "node3": want its own, "node1"`},
		{"change of another lease", func() error { return one.Update(t.Context(), leased(second)) }, `may not write AddressLease "node2"`},
		{"patch of another lease", func() error { return one.Patch(t.Context(), second.DeepCopy(), sessionPatch()) }, `may not write AddressLease "node2"`},
		{"change of own lease", func() error { return two.Update(t.Context(), leased(second)) }, ""},
		{"own status", func() error { return two.Status().Patch(t.Context(), second.DeepCopy(), statusPatch()) }, "no agent's to write"},
		{"another status", func() error { return one.Status().Patch(t.Context(), second.DeepCopy(), statusPatch()) }, "no agent's to write"},
		{"end of another lease", func() error { return one.Delete(t.Context(), leaseOf("node2")) }, `may not write AddressLease "node2"`},
		{"end of own lease", func() error { return two.Delete(t.Context(), leaseOf("node2")) }, ""},
		{"lease by a token without a node", func() error { return nowhere.Create(t.Context(), leaseOf("node4")) }, "the token names no node"},

		{"own endpoint", func() error { return one.Create(t.Context(), endpointOn("a", "node1")) }, ""},
		{"endpoint of another node", func() error { return one.Create(t.Context(), endpointOn("x", "node2")) }, `status.current.node is "node2"`},
		{"endpoint of nobody", func() error { return one.Create(t.Context(), endpointOn("x", "")) }, `writes its own node there`},
		{"claim of another's endpoint", func() error { return one.Update(t.Context(), stolen) }, `may not write SpiderEndpoint default/b`},
		{"end of another's endpoint", func() error { return one.Delete(t.Context(), endpointOn("b", "")) }, `may not write SpiderEndpoint default/b`},
		{"end of nobody's endpoint", func() error { return one.Delete(t.Context(), endpointOn("c", "")) }, `may not write SpiderEndpoint default/c`},
		{"claim of nobody's endpoint", func() error { return one.Update(t.Context(), claimed) }, ""},
		{"gift of own endpoint", func() error { return one.Update(t.Context(), given()) }, `status.current.node is "node2"`},
		{"end of own endpoint", func() error { return two.Delete(t.Context(), endpointOn("b", "")) }, ""},
		{"endpoint by a token without a node", func() error { return nowhere.Create(t.Context(), endpointOn("x", "")) }, "the token names no node"},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			err := step.do()
			switch {
			case step.refusal == "" && err != nil:
				t.Error(err)
			case step.refusal != "" && (err == nil || !strings.Contains(err.Error(), step.refusal)):
				t.Errorf("error %v, want %q", err, step.refusal)
			}
		})
	}
}

// leased is a lease that asks for more than before.
func leased(lease *v1alpha1.AddressLease) *v1alpha1.AddressLease {
	changed := lease.DeepCopy()
	changed.Spec.Session = "2"
	return changed
}

func sessionPatch() client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"session":"3"}}`))
}

func statusPatch() client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(`{"status":{"nodeUID":"x"}}`))
}
