package cluster

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/kubetest"
	"railhead/internal/policy"
)

// ownedPod is a pod that asks for a pool of its application.
func ownedPod(name, uid, kind, owner string) content {
	version := map[string]string{"ReplicaSet": "apps/v1", "Job": "batch/v1"}[kind]
	if version == "" {
		version = "example.org/v1"
	}
	return podOf("n1", name, uid, content{
		"annotations":     content{v2beta1.AnnotationSubnet: `{"ipv4":["subnet0"]}`},
		"ownerReferences": []any{content{"apiVersion": version, "kind": kind, "name": owner, "uid": "uid-" + owner, "controller": true}},
	})
}

// replicaSetOf is one of a Deployment.
func replicaSetOf(name string) content {
	return content{"metadata": content{
		"namespace": "ai", "name": name,
		"ownerReferences": []any{content{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-web", "controller": true}},
	}}
}

func podNamed(t *testing.T, c *Cache, name string) *metav1.PartialObjectMetadata {
	t.Helper()
	pod, err := c.Pod(t.Context(), "ai", name, "")
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// TestAbove wants what is above a pod's controller to be there when it is asked for,
// without a request.
func TestAbove(t *testing.T) {
	t.Parallel()
	web := []policy.Application{{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web", UID: "uid-web"}}
	nightly := []policy.Application{{GroupVersion: "batch/v1", Kind: "CronJob", Namespace: "ai", Name: "nightly", UID: "uid-nightly"}}
	a := small()
	a.set(replicaSetsPath, replicaSetOf("web-1"))
	a.set(replicaSetsPath, content{"metadata": content{"namespace": "ai", "name": "alone"}})
	a.set(replicaSetsPath, content{"metadata": content{"namespace": "ai", "name": "again", "uid": "another"}})
	a.set("/apis/batch/v1/jobs", content{"metadata": content{
		"namespace": "ai", "name": "nightly-1",
		"ownerReferences": []any{content{"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "uid-nightly", "controller": true}},
	}})
	pods := map[string]struct {
		pod  content
		want []policy.Application
	}{
		"web-1-a": {ownedPod("web-1-a", "w1", "ReplicaSet", "web-1"), web},
		"web-1-b": {ownedPod("web-1-b", "w2", "ReplicaSet", "web-1"), web},
		"job":     {ownedPod("job", "w3", "Job", "nightly-1"), nightly},
		"alone-a": {ownedPod("alone-a", "w4", "ReplicaSet", "alone"), nil},
		"other":   {ownedPod("other", "w5", "Thing", "x"), nil},
		"nobody":  {podOf("n1", "nobody", "w6", content{"annotations": content{v2beta1.AnnotationSubnets: "[]"}}), nil},
	}
	for _, test := range pods {
		a.set(podsPath, test.pod)
	}
	running(t, a, func(c *Cache) {
		before := a.requests()
		a.Leave()
		for name, test := range pods {
			got, err := c.Above(t.Context(), podNamed(t, c, name))
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
			}
		}
		if n := a.requests() - before; n != 0 {
			t.Errorf("%d requests", n)
		}
		if n := a.Count("get /apis/apps/v1/namespaces/ai/replicasets/web-1"); n != 1 {
			t.Errorf("the ReplicaSet was read %d times, want once", n)
		}
	})
}

// TestAboveGone wants nothing above what is gone, an error while that cannot be
// known, and what no pod has to be forgotten.
func TestAboveGone(t *testing.T) {
	t.Parallel()
	a := small()
	const path = "/apis/apps/v1/namespaces/ai/replicasets/web-1"
	a.Answers[path] = http.StatusForbidden
	a.set(replicaSetsPath, replicaSetOf("web-1"))
	a.set(podsPath, ownedPod("a", "u1", "ReplicaSet", "web-1"))
	a.set(podsPath, ownedPod("gone", "u2", "ReplicaSet", "gone"))
	running(t, a, func(c *Cache) {
		if got, err := c.Above(t.Context(), podNamed(t, c, "gone")); err != nil || got != nil {
			t.Errorf("above what is gone: %v, error %v", got, err)
		}
		if _, err := c.Above(t.Context(), podNamed(t, c, "a")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ReplicaSet ai/web-1") {
			t.Errorf("error %v, want one that names the ReplicaSet", err)
		}
		a.Change(func() { a.Answers = map[string]int{} })
		after(2 * time.Minute) // it is tried again though nobody asks
		a.Leave()
		if got, err := c.Above(t.Context(), podNamed(t, c, "a")); err != nil || len(got) != 1 {
			t.Errorf("above: %v, error %v", got, err)
		}
		a.ComeBack()
		after(2 * time.Minute)
		a.delete(podsPath, "ai/a")
		synctest.Wait()
		if len(c.above.known) > 0 {
			t.Errorf("known for nobody: %v", c.above.known)
		}
	})
}

// TestAboveUnneeded wants no request for pods whose application can have no pool, and
// one as soon as it can.
func TestAboveUnneeded(t *testing.T) {
	t.Parallel()
	a := small()
	a.set(replicaSetsPath, replicaSetOf("web-1"))
	pod := ownedPod("a", "u1", "ReplicaSet", "web-1")
	kubetest.Meta(pod)["annotations"] = content{}
	a.set(podsPath, pod)
	running(t, a, func(c *Cache) {
		before := a.requests()
		if got, err := c.Above(t.Context(), podNamed(t, c, "a")); err != nil || got != nil || a.requests() != before {
			t.Errorf("above: %v, error %v, %d requests", got, err, a.requests()-before)
		}
		owner := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web", UID: "uid-web"}
		own := poolOf("own", "10.0.2.0/24", "10.0.2.9")
		kubetest.Meta(own)["labels"] = owner.Labels()
		own["spec"].(content)["podAffinity"] = owner.Affinity() //nolint:forcetypeassert // it is made above
		a.set(poolsPath, own)
		synctest.Wait()
		if got, err := c.Above(t.Context(), podNamed(t, c, "a")); err != nil || !cmp.Equal(got, []policy.Application{owner}) {
			t.Errorf("above: %v, error %v", got, err)
		}
		a.delete(poolsPath, "own")
		synctest.Wait()
		if c.owned.has("ai") || len(c.owned.by)+len(c.owned.count) > 0 {
			t.Error("a pool that is gone counts")
		}
	})
}
