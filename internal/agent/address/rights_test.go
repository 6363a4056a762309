package address

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"railhead/internal/ipam/holder"
	"railhead/internal/kubetest"
)

// rights are those of the agent's manifest, as the API server has them in tests.
func rights(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "railhead-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
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

// TestRights wants the agent's manifest to permit all that the service asks, and
// of what is the service's alone, no more than that.
func TestRights(t *testing.T) {
	t.Parallel()
	has := rights(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(newController(2, 9))
		r := f.ready(t)
		request := f.pod("web-0", "rail0")
		request.Identity = web0
		kept := r.assign(t, request)
		f.api.Set(endpointOf("a"), kubetest.ObjectOf(newEndpoint(new(given("a", "uid-0", "10.0.0.9/24", "")), "n1", maker{"Pod", "a", "uid-0"})))
		plain := r.assign(t, f.pod("a", "rail0")) // another pod's endpoint is there
		left := r.assign(t, f.pod("left", "rail0"))
		time.Sleep(10 * time.Second)
		if err := r.Release(t.Context(), kept.Key, 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Release(t.Context(), plain.Key, 0, nil); err != nil {
			t.Fatal(err)
		}
		f.api.Delete(podsPath + "/left")
		time.Sleep(collectAfter + 3*collectEvery)
		if slices.ContainsFunc(r.Assignments(), func(a holder.Assignment) bool { return a.Key == left.Key }) {
			t.Error("what pod left had is not released")
		}
		for verb := range f.api.Verbs {
			if !has[verb] {
				t.Errorf("the service needs the right to %s, which deploy/railhead-agent.yaml does not give", verb)
			}
		}
		for right := range has {
			_, resource, _ := strings.Cut(right, " ")
			if slices.Contains([]string{"addressleases", "spiderendpoints"}, resource) && !f.api.Verbs[right] {
				t.Errorf("deploy/railhead-agent.yaml gives the right to %s, which the service does not need", right)
			}
		}
	})
}
