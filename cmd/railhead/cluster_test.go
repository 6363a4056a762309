package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"railhead/internal/golden"
)

// TestCluster prints the pools and networks of testdata/cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"pools.txt":               {"pools"},
		"pools.used.wide.txt":     {"pools", "--sort", "used", "-o", "wide"},
		"pools.named.txt":         {"pools", "six", "rail0"},
		"pools.yaml":              {"pools", "-o", "yaml", "rail0", "old"},
		"pools.absent.txt":        {"pools", "rail7"},
		"networks.txt":            {"networks"},
		"networks.all.txt":        {"networks", "-A"},
		"networks.wide.txt":       {"networks", "-n", "ml", "-o", "wide"},
		"networks.named.txt":      {"networks", "-A", "ai/rail1", "vf"},
		"networks.json":           {"networks", "-o", "json", "-A"},
		"networks.nowhere.txt":    {"networks", "-n", "empty"},
		"networks.absent.txt":     {"networks", "-n", "ml", "rail0"},
		"networks.no-context.txt": {"networks", "--context", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, kubeconfig := newAPIServer(t, "objects.yaml")
			stdout, stderr, status := railhead(t, append(args, "--kubeconfig", kubeconfig)...)
			got := stdout
			if filepath.Ext(name) == ".txt" {
				got += trailer(stderr, status)
			}
			golden.Equal(t, filepath.Join("testdata", "cluster", name), unnamed(got, kubeconfig))
		})
	}
}

// TestClusterErrors has the API server refuse lists.
func TestClusterErrors(t *testing.T) {
	t.Parallel()
	all := func(status int) map[string]int {
		answers := map[string]int{}
		for _, path := range resources {
			answers[path] = status
		}
		return answers
	}
	without := func(status int, kinds ...string) map[string]int {
		answers := map[string]int{}
		for _, kind := range kinds {
			answers[resources[kind]] = status
		}
		return answers
	}
	for name, tt := range map[string]struct {
		answers map[string]int
		args    []string
	}{
		"no-crds.pools.txt":        {all(http.StatusNotFound), []string{"pools"}},
		"no-crds.networks.txt":     {all(http.StatusNotFound), []string{"networks"}},
		"forbidden.pools.txt":      {all(http.StatusForbidden), []string{"pools"}},
		"forbidden.networks.txt":   {all(http.StatusForbidden), []string{"networks"}},
		"unauthorized.txt":         {all(http.StatusUnauthorized), []string{"pools"}},
		"broken.txt":               {all(http.StatusBadRequest), []string{"pools"}},
		"counts-unknown.txt":       {without(http.StatusForbidden, "SpiderEndpoint", "SpiderReservedIP", "SpiderSubnet"), []string{"pools"}},
		"pods-unknown.txt":         {without(http.StatusForbidden, "Pod", "SpiderIPPool"), []string{"networks", "rail0"}},
		"no-smc.networks.txt":      {without(http.StatusNotFound, "SpiderMultusConfig"), []string{"networks", "-A"}},
		"nad-unknown.networks.txt": {without(http.StatusForbidden, "NetworkAttachmentDefinition"), []string{"networks"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, kubeconfig := newAPIServer(t, "objects.yaml")
			a.answers = tt.answers
			stdout, stderr, status := railhead(t, append(tt.args, "--kubeconfig", kubeconfig)...)
			golden.Equal(t, filepath.Join("testdata", "cluster", name), unnamed(stdout+trailer(stderr, status), kubeconfig))
		})
	}
}

func TestClusterIsEmpty(t *testing.T) {
	t.Parallel()
	_, kubeconfig := newAPIServer(t, "")
	for verb, want := range map[string]string{
		"pools": "no pools\n", "networks": "no networks in namespace ai; -A looks in all\n", "networks -A": "no networks\n",
	} {
		args := append(strings.Fields(verb), "--kubeconfig", kubeconfig)
		if stdout, stderr, status := railhead(t, args...); stdout != want || stderr != "" || status != 0 {
			t.Errorf("%s: exit status %d, standard output %q, standard error %q", verb, status, stdout, stderr)
		}
	}
}

// TestClusterPages wants the same of lists in pages, and pods read as metadata
// and without those that have ended.
func TestClusterPages(t *testing.T) {
	t.Parallel()
	whole, kubeconfig := newAPIServer(t, "objects.yaml")
	want, _, _ := railhead(t, "networks", "-A", "-o", "wide", "--kubeconfig", kubeconfig)
	paged, kubeconfig := newAPIServer(t, "objects.yaml")
	paged.Page = 1
	got, _, status := railhead(t, "networks", "-A", "-o", "wide", "--kubeconfig", kubeconfig)
	if status != 0 || got != want {
		t.Errorf("exit status %d, in pages:\n%s\nat once:\n%s", status, got, want)
	}
	if len(paged.asked) <= len(whole.asked) {
		t.Errorf("%d requests for pages, and %d for all at once", len(paged.asked), len(whole.asked))
	}
	isPods := func(request string) bool {
		return strings.HasPrefix(request, "GET /api/v1/pods?") && strings.Contains(request, "status.phase%21%3DSucceeded") &&
			strings.Contains(request, "limit=")
	}
	if !slices.ContainsFunc(paged.asked, isPods) {
		t.Errorf("no page of pods that have not ended among %q", paged.asked)
	}
}

// TestNoCluster wants one line that names what was asked, and says what to do,
// where there is no API server to ask.
func TestNoCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const text = `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: a, context: {cluster: a, user: u}}], users: [{name: u, user: {}}]}`
	away := file("away", text)
	program := file("program", strings.NewReplacer(
		"http:", "https:", "user: {}", "user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-program, interactiveMode: Never}}").Replace(text))
	const choose = "want a kubeconfig by --kubeconfig, $KUBECONFIG or ~/.kube/config, and a context that it has"
	for name, tt := range map[string]struct {
		kubeconfig string
		want       []string
	}{
		"no such file":   {filepath.Join(dir, "absent"), []string{"absent: no such file", choose}},
		"an empty file":  {file("empty", ""), []string{"empty is empty or has no current-context", choose}},
		"no context":     {file("none", strings.Replace(text, "current-context: a,", "", 1)), []string{"none is empty or has no current-context", choose}},
		"no YAML":        {file("broken", "{{{"), []string{"broken", choose}},
		"no credentials": {program, []string{"https://127.0.0.1:1 was not asked", "no-such-program", "--kubeconfig or --context"}},
		"nobody there":   {away, []string{"the API server http://127.0.0.1:1 does not answer: ", "--kubeconfig or --context"}},
	} {
		for _, verb := range [][]string{{"pools"}, {"networks", "-A"}, {"addresses"}, {"explain", "pod", "a/b"}} {
			stdout, stderr, status := railhead(t, append(verb, "--kubeconfig", tt.kubeconfig)...)
			if status != exitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, %s: exit status %d, standard output %q, standard error %q", verb[0], name, status, stdout, stderr)
			}
			for _, part := range tt.want {
				if !strings.Contains(stderr, part) {
					t.Errorf("%s, %s: %q does not say %q", verb[0], name, stderr, part)
				}
			}
		}
	}
}
