package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestNoNAD wants to be told what there is instead.
func TestNoNAD(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	for _, name := range []string{"ai/rail0", "ai/rail1", "ai/rail2", "ai/storage", "web/front", "net/shared", "one/two"} {
		namespace, name, _ := strings.Cut(name, "/")
		a.set(nadsPath, nadOf(namespace, name, "{}"))
	}
	running(t, a, func(c *Cache) {
		for _, test := range []struct{ namespace, name, want string }{
			{"ai", "rail9", "there is no NetworkAttachmentDefinition ai/rail9: of the 4 in namespace ai, these are near: rail0, rail1, rail2"},
			{"ai", "shared", "there is no NetworkAttachmentDefinition ai/shared: namespace net has one of this name, want net/shared"},
			{"web", "fornt", "there is no NetworkAttachmentDefinition web/fornt: namespace web has front"},
			{"empty", "x", "there is no NetworkAttachmentDefinition empty/x: namespace empty has none"},
		} {
			if _, err := c.NAD(test.namespace, test.name); !apierrors.IsNotFound(err) || err.Error() != test.want {
				t.Errorf("error %v, want %q", err, test.want)
			}
		}
	})
}

// TestNoCoordinator wants to be told why there is none.
func TestNoCoordinator(t *testing.T) {
	t.Parallel()
	a := newAPIServer()
	running(t, a, func(c *Cache) {
		if _, _, err := c.Coordinator(); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "there is no SpiderCoordinator default") {
			t.Errorf("error %v, want that there is none", err)
		}
		a.set(coordinatorsPath, spiderOf("SpiderCoordinator", "default", content{"podCIDRType": "auto", "mode": "x"}, nil))
		synctest.Wait()
		if _, _, err := c.Coordinator(); err == nil || !strings.Contains(err.Error(), "spec.mode") {
			t.Errorf("error %v, want the rule that it breaks", err)
		}
		a.set(coordinatorsPath, spiderOf("SpiderCoordinator", "default", content{"podCIDRType": "auto"}, nil))
		synctest.Wait()
		if spec, _, err := c.Coordinator(); err != nil || *spec.Mode != "auto" {
			t.Errorf("spec %+v, error %v", spec, err)
		}
		a.delete(coordinatorsPath, "default")
		synctest.Wait()
		if _, _, err := c.Coordinator(); !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want that there is none", err)
		}
	})
}

// TestNamespace wants a namespace to be as new as the newest of its pods, to be known
// without a request, and to be forgotten with the last of them.
func TestNamespace(t *testing.T) {
	t.Parallel()
	a := small()
	namespaceOf := func(name, team string) content {
		return content{"metadata": content{"name": name, "labels": content{"team": team}}}
	}
	podIn := func(namespace, name string) content {
		return podOf("n1", name, "u-"+name, content{"namespace": namespace})
	}
	team := func(t *testing.T, c *Cache, name, want string, requests int) {
		t.Helper()
		before := a.requests()
		meta, err := c.Namespace(t.Context(), name)
		if err != nil || meta.Labels["team"] != want || a.requests() != before+requests {
			t.Errorf("namespace %+v, error %v, %d requests, want team %s and %d", meta, err, a.requests()-before, want, requests)
		}
	}
	running(t, a, func(c *Cache) {
		team(t, c, "ai", "a", 0)
		a.set(namespacesPath, namespaceOf("ai", "b"))
		a.set(podsPath, podIn("ai", "p1")) // so soon after the other that it is not read again
		synctest.Wait()
		team(t, c, "ai", "a", 0)
		after(2 * namespaceFresh)
		a.set(podsPath, podIn("ai", "p2"))
		synctest.Wait()
		team(t, c, "ai", "b", 0)
		a.set(namespacesPath, namespaceOf("ai", "c"))
		after(2 * namespaceOld)
		team(t, c, "ai", "b", 0) // read for who asks next
		synctest.Wait()
		team(t, c, "ai", "c", 0)

		a.set(namespacesPath, namespaceOf("other", "d")) // whose pods the watch has not told of
		team(t, c, "other", "d", 1)
		if _, err := c.Namespace(t.Context(), "x"); !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want that there is none", err)
		}
		a.Leave()
		after(time.Hour)
		team(t, c, "ai", "c", 0)
		synctest.Wait()
		a.ComeBack()
		after(5 * time.Minute)
		for _, name := range []string{"a-0", "p1", "p2"} {
			a.delete(podsPath, "ai/"+name)
		}
		synctest.Wait()
		if _, ok := c.namespaces.get("ai"); ok {
			t.Error("a namespace without pods is known")
		}
	})
}

// TestReadNAD asks once for what no watch has told of.
func TestReadNAD(t *testing.T) {
	t.Parallel()
	a := small()
	running(t, a, func(c *Cache) {
		ask := func(name, want string, requests int) {
			t.Helper()
			before := a.requests()
			nad, err := c.ReadNAD(t.Context(), "ai", name)
			switch {
			case want == "" && (err != nil || nad.Spec.Config != `{"type":"macvlan"}` || nad.ManagedFields != nil || nad.Annotations[lastApplied] != ""):
				t.Errorf("%s: %+v, error %v", name, nad, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: error %v, want %q", name, err, want)
			}
			if got := a.requests() - before; got != requests {
				t.Errorf("%s: %d requests, want %d", name, got, requests)
			}
		}
		ask("rail0", "", 0)
		if err := c.nads.Delete(c.nads.get("ai", "rail0")); err != nil { // as if it was not told of yet
			t.Fatal(err)
		}
		ask("rail0", "", 1)
		ask("rail9", "there is no NetworkAttachmentDefinition ai/rail9", 1)
		if _, err := c.ReadNAD(t.Context(), "ai", "rail9"); !apierrors.IsNotFound(err) {
			t.Errorf("error %v, want that there is none", err)
		}
		a.Leave()
		ask("rail9", "the API server does not tell of it", 1)
		if _, err := c.ReadNAD(t.Context(), "ai", "rail9"); apierrors.IsNotFound(err) {
			t.Errorf("error %v, want that it cannot be known", err)
		}
		a.ComeBack()
	})
}
