package api

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podRights lets agents do to pods and Events what they like: what keeps them from
// it is under test.
func (s *Server) podRights(t *testing.T) {
	t.Helper()
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: testRole + "agents-and-pods"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "pods/status", "pods/binding", "events"}, Verbs: []string{"*"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: testRole + "agents-and-pods"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: testRole + "agents-and-pods"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: agentAccount}},
		},
	} {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// userPodOn is a pod of a node, with one annotation of its user.
func userPodOn(node, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": "rail0"}},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "c", Image: "x"}},
		},
	}
}

// eventOf is an Event about a pod, of the agent of a node.
func eventOf(name, node, kind, eventType string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: "default", Name: "a"},
		Source:         corev1.EventSource{Component: "railhead-agent", Host: node},
		Type:           eventType, Reason: "FailedAttach", Message: "x",
	}
}

func mergePatch(text string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(text))
}

// TestAgentsAnnotateTheirPods wants an agent to write what the pods of its token's
// node are attached to, to tell of pods in its own name, and to do nothing else to
// pods, whatever its role allows.
func TestAgentsAnnotateTheirPods(t *testing.T) {
	s := Exclusive(t)
	s.Install(t)
	s.node(t, "node1")
	s.node(t, "node2")
	one, nowhere := s.agentOn(t, "node1"), s.agentOn(t, "")
	s.podRights(t)
	own, theirs, unbound := userPodOn("node1", "a"), userPodOn("node2", "b"), userPodOn("", "c")
	for _, pod := range []*corev1.Pod{own, theirs, unbound} {
		if err := s.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	patched := func(by client.Client, pod *corev1.Pod, text string) func() error {
		return func() error { return by.Patch(t.Context(), pod.DeepCopy(), mergePatch(text)) }
	}
	made := func(by client.Client, o client.Object) func() error {
		return func() error { return by.Create(t.Context(), o) }
	}
	const status = `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/network-status":"[]","railhead.io/attachment":"{}"}}}`
	Eventually(t, func() string { // policies come into force a moment after they were made, rights too
		for _, refused := range []error{patched(nowhere, own, status)(), made(nowhere, eventOf("probe", "", "Pod", "Warning"))()} {
			if !apierrors.IsInvalid(refused) {
				return "a refusal, not " + said(refused)
			}
		}
		return ""
	})
	for _, step := range []struct {
		name    string
		do      func() error
		refusal string // empty: done
	}{
		{"status of own pod", patched(one, own, status), ""},
		{"status of own pod again", patched(one, own, `{"metadata":{"uid":"`+string(own.UID)+`","annotations":{"railhead.io/attachment":null}}}`), ""},
		{"status of another's pod", patched(one, theirs, status), `of node "node1" may not write pod default/b, which is on node "node2"`},
		{"status of nobody's pod", patched(one, unbound, status), `may not write pod default/c, which is on node ""`},
		{"status by a token without a node", patched(nowhere, own, status), "the token names no node"},
		{"another annotation", patched(one, own, `{"metadata":{"annotations":{"x":"y"}}}`), "and no others"},
		{"change of an annotation", patched(one, own, `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"rail1"}}}`), "and no others"},
		{"end of an annotation", patched(one, own, `{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":null}}}`), "and no others"},
		{"end of all annotations", patched(one, own, `{"metadata":{"annotations":null}}`), "and no others"},
		{"labels", patched(one, own, `{"metadata":{"labels":{"app":"x"}}}`), "and nothing else"},
		{"finalizers", patched(one, own, `{"metadata":{"finalizers":["railhead.io/x"]}}`), "and nothing else"},
		{"owners", patched(one, own, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"b","uid":"u"}]}}`), "and nothing else"},
		{"image", patched(one, own, `{"spec":{"containers":[{"name":"c","image":"y"}]}}`), "and nothing else"},
		{"its status", func() error {
			return one.Status().Patch(t.Context(), own.DeepCopy(), mergePatch(`{"status":{"phase":"Failed"}}`))
		}, "no status of theirs"},
		{"a new pod", made(one, userPodOn("node1", "d")), "makes, ends and binds no pods"},
		{"end of own pod", func() error { return one.Delete(t.Context(), own.DeepCopy()) }, "makes, ends and binds no pods"},
		{"binding", func() error {
			return one.SubResource("binding").Create(t.Context(), unbound.DeepCopy(), &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "node1"}})
		}, "makes, ends and binds no pods"},

		{"event", made(one, eventOf("e1", "node1", "Pod", "Warning")), ""},
		{"event of another node", made(one, eventOf("e2", "node2", "Pod", "Warning")), `want an Event of the agent of node "node1"`},
		{"event about no pod", made(one, eventOf("e3", "node1", "Node", "Warning")), "about pods, and no others"},
		{"event that nothing happened", made(one, eventOf("e4", "node1", "Pod", "Normal")), "about pods, and no others"},
		{"end of an event", func() error { return one.Delete(t.Context(), eventOf("e1", "node1", "Pod", "Warning")) }, "about pods, and no others"},
		{"event by a token without a node", made(nowhere, eventOf("e5", "", "Pod", "Warning")), "the token names no node"},
	} {
		err := step.do()
		switch {
		case step.refusal == "" && err != nil:
			t.Errorf("%s: %v", step.name, err)
		case step.refusal != "" && (err == nil || !strings.Contains(err.Error(), step.refusal)):
			t.Errorf("%s: error %v, want %q", step.name, err, step.refusal)
		}
	}
}

func said(err error) string {
	if err == nil {
		return "success"
	}
	return err.Error()
}
