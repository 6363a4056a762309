package cluster

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"railhead/internal/kubetest"
)

// TestPod wants a pod of memory without a request, any other after one, and a pod
// that is gone to be told from one that is not known.
func TestPod(t *testing.T) {
	t.Parallel()
	a := small()
	static := podOf("n1", "static", "u5", content{"annotations": content{mirrored: "hash"}})
	a.set(podsPath, static)
	running(t, a, func(c *Cache) {
		unseen := func(o content) { // the watch has not told of it yet
			a.Change(func() { a.Objects["/api/v1/namespaces/ai/pods/"+kubetest.Meta(o)["name"].(string)] = o })
		}
		unseen(podOf("n1", "new", "u6", nil))
		unseen(podOf("n1", "a-0", "u0-again", nil))
		for _, step := range []struct {
			name, pod, uid string
			want           string // UID; empty: it is gone
			requests       int
		}{
			{"any", "a-0", "", "u0", 0},
			{"known", "a-0", "u0", "u0", 0},
			{"static, by the kubelet's UID", "static", "hash", "u5", 0},
			{"static, by its own", "static", "u5", "u5", 0},
			{"not told of yet", "new", "u6", "u6", 1},
			{"made again under its name", "a-0", "u0-again", "u0-again", 1},
			{"replaced", "a-0", "u00", "", 1},
			{"never there", "x", "u7", "", 1},
		} {
			before := a.requests()
			pod, err := c.Pod(t.Context(), "ai", step.pod, step.uid)
			switch {
			case step.want == "" && (!apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "gone")):
				t.Errorf("%s: error %v, want that it is gone", step.name, err)
			case step.want != "" && (err != nil || string(pod.UID) != step.want || pod.ManagedFields != nil):
				t.Errorf("%s: pod %+v, error %v", step.name, pod, err)
			}
			if n := a.requests() - before; n != step.requests {
				t.Errorf("%s: %d requests, want %d", step.name, n, step.requests)
			}
		}
		a.Change(func() { a.Answers["/api/v1/namespaces/ai/pods/y"] = http.StatusForbidden })
		if _, err := c.Pod(t.Context(), "ai", "y", "u"); !apierrors.IsForbidden(err) {
			t.Errorf("error %v, want the API server's", err)
		}
	})
}

// TestRecreated wants a pod that was made again under its name to be the one that
// is known, and what it had to be forgotten.
func TestRecreated(t *testing.T) {
	t.Parallel()
	a := small()
	running(t, a, func(c *Cache) {
		a.delete(podsPath, "ai/a-0")
		synctest.Wait()
		if c.pods.get("ai", "a-0") != nil {
			t.Error("a pod that was deleted is known")
		}
		a.set(podsPath, podOf("n1", "a-0", "u1", nil))
		synctest.Wait()
		before := a.requests()
		if _, err := c.Pod(t.Context(), "ai", "a-0", "u1"); err != nil || a.requests() != before {
			t.Errorf("error %v, %d requests", err, a.requests()-before)
		}
		if _, err := c.Pod(t.Context(), "ai", "a-0", "u0"); !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want that it is gone", err)
		}
	})
}

// TestTrimPod wants what is needed to stay, and what the agent writes to leave no
// more than its digest, however often it is trimmed.
func TestTrimPod(t *testing.T) {
	t.Parallel()
	ended := metav1.NewTime(time.Unix(1, 0))
	owners := []metav1.OwnerReference{{Name: "other"}, {Name: "rs", Controller: new(true)}}
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ai", Name: "a", UID: "u", ResourceVersion: "1", GenerateName: "a-", Generation: 3, DeletionTimestamp: &ended,
		Labels: map[string]string{"app": "x"}, OwnerReferences: owners, Finalizers: []string{"f"},
		Annotations:   map[string]string{"k8s.v1.cni.cncf.io/network-status": "[…]", "railhead.io/attachment": "{…}", "x": "y", lastApplied: "z"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}}
	trimPod(pod)
	trimPod(pod) // as one of a list is
	want := metav1.ObjectMeta{
		Namespace: "ai", Name: "a", UID: "u", ResourceVersion: "1", DeletionTimestamp: &ended,
		Labels: map[string]string{"app": "x"}, OwnerReferences: owners[1:],
		Annotations: map[string]string{"k8s.v1.cni.cncf.io/network-status": Digest("[…]"), "railhead.io/attachment": Digest("{…}"), "x": "y"},
	}
	if diff := cmp.Diff(want, pod.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPatchPod wants a merge patch to be sent once, and the API's error to be told.
func TestPatchPod(t *testing.T) {
	t.Parallel()
	a := small()
	running(t, a, func(c *Cache) {
		if err := c.PatchPod(t.Context(), "ai", "a-0", []byte(`{"metadata":{"annotations":{"x":"y"}}}`)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]content{{"metadata": content{"annotations": content{"x": "y"}}}}, a.sent()); diff != "" {
			t.Errorf("patches (-want +got):\n%s", diff)
		}
		if err := c.PatchPod(t.Context(), "ai", "x", []byte(`{}`)); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "pod ai/x") {
			t.Errorf("error %v, want that there is none", err)
		}
		a.Change(func() { a.Answers["/api/v1/namespaces/ai/pods/a-0"] = http.StatusConflict })
		before := a.requests()
		if err := c.PatchPod(t.Context(), "ai", "a-0", []byte(`{}`)); !apierrors.IsConflict(err) || a.requests() != before+1 {
			t.Errorf("error %v after %d requests, want one conflict", err, a.requests()-before)
		}
	})
}

// TestEvent wants an Event of the core API about the pod.
func TestEvent(t *testing.T) {
	t.Parallel()
	a := small()
	running(t, a, func(c *Cache) {
		pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "a-0", UID: "u0"}}
		if err := c.Event(t.Context(), pod, "FailedAttach", "rail 2: no answer"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Nanosecond) // the time is a part of the name
		if err := c.Event(t.Context(), pod, "FailedAttach", strings.Repeat("é", MessageMost)); err != nil {
			t.Fatal(err)
		}
		sent := a.sent()
		if len(sent) != 2 || a.Count("create /api/v1/namespaces/ai/events") != 2 {
			t.Fatalf("sent: %v", sent)
		}
		const at = "2000-01-01T00:00:00Z"
		want := content{
			"apiVersion": "v1", "kind": "Event", "metadata": content{"namespace": "ai", "name": "set below"},
			"involvedObject": content{"apiVersion": "v1", "kind": "Pod", "namespace": "ai", "name": "a-0", "uid": "u0"},
			"reason":         "FailedAttach", "message": "rail 2: no answer", "type": "Warning", "count": 1.0,
			"source": content{"component": "railhead-agent", "host": "n1"}, "firstTimestamp": at, "lastTimestamp": at,
		}
		kubetest.Meta(want)["name"] = kubetest.Meta(sent[0])["name"]
		delete(kubetest.Meta(sent[0]), "creationTimestamp")
		if diff := cmp.Diff(want, sent[0]); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
		if name, ok := kubetest.Meta(sent[0])["name"].(string); !ok || !strings.HasPrefix(name, "a-0.") {
			t.Errorf("name %v", kubetest.Meta(sent[0])["name"])
		}
		if text, ok := sent[1]["message"].(string); !ok || len(text) > MessageMost || !strings.HasSuffix(text, "é…") {
			t.Errorf("long message %v", sent[1]["message"])
		}
		a.Change(func() { a.Answers["/api/v1/namespaces/ai/events"] = http.StatusForbidden })
		if err := c.Event(t.Context(), pod, "FailedAttach", "x"); !apierrors.IsForbidden(err) {
			t.Errorf("error %v, want the API server's", err)
		}
	})
}

// TestEventName wants names that Kubernetes takes.
func TestEventName(t *testing.T) {
	t.Parallel()
	for _, pod := range []string{"a", strings.Repeat("a", 253), strings.Repeat("a", 229) + "-" + strings.Repeat("a", 20), strings.Repeat("a.", 126) + "a"} {
		name := eventName(pod, time.Now())
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || !strings.HasPrefix(name, "a") {
			t.Errorf("%s: %q", name, errs)
		}
	}
}

// rights are those of the agent's manifest, as the API server has them in tests.
func rights(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "railhead-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // or Role, which has rules too
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[verb+" "+resource] = true
				}
			}
		}
	}
	return all
}

// TestRights wants the agent's manifest to permit all that the Cache asks, and of
// what it alone asks, no more than that.
func TestRights(t *testing.T) {
	t.Parallel()
	has := rights(t)
	used := map[string]bool{}
	for _, isOld := range []bool{false, true} {
		a := small()
		a.IsOld = isOld
		running(t, a, func(c *Cache) {
			a.set(podsPath, ownedPod("a-1", "u1", "ReplicaSet", "web-1"))
			a.set(poolsPath, poolOf("new", "10.0.3.0/24", "10.0.3.9"))
			synctest.Wait()
			_, _ = c.Pod(t.Context(), "ai", "x", "u")
			_, _ = c.ReadNAD(t.Context(), "ai", "unknown")
			_ = c.PatchPod(t.Context(), "ai", "a-0", []byte("{}"))
			_ = c.Event(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "a-0"}}, "R", "x")
		})
		for verb := range a.Verbs {
			used[verb] = true
		}
	}
	for verb := range used {
		if !has[verb] {
			t.Errorf("the Cache needs the right to %s, which deploy/railhead-agent.yaml does not give", verb)
		}
	}
	ours := []string{
		"namespaces", "events", "configmaps", "network-attachment-definitions",
		"spidercoordinators", "spiderippools", "spidermultusconfigs", "spiderreservedips", "spidersubnets",
	}
	for right := range has {
		if _, resource, _ := strings.Cut(right, " "); slices.Contains(ours, resource) && !used[right] {
			t.Errorf("deploy/railhead-agent.yaml gives the right to %s, which the Cache does not need", right)
		}
	}
}
