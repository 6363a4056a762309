package dashboards

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"railhead/hack/dashboards/lab"
)

// TestPromtoolCheck lets Prometheus' own tool read the rules.
func TestPromtoolCheck(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		if _, err := lab.Promtool(t.Context(), promtool, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(rulesDir, name)); err != nil {
			t.Error(err)
		}
	}
}

// cases are the files of promtool's unit tests.
func cases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no unit tests of rules: %v", err)
	}
	return files
}

// TestPromtoolRules runs the unit tests of the rules: series made up by hand,
// some that are to fire and some beside them that are not.
func TestPromtoolRules(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, file := range cases(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if _, err := lab.Promtool(t.Context(), promtool, "test", "rules", file); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEveryAlertHasACase wants a unit test in which an alert fires, which says
// exactly for what: what else the test has does not fire.
func TestEveryAlertHasACase(t *testing.T) {
	t.Parallel()
	fires := map[string]bool{}
	name := regexp.MustCompile(`alertname="(RDMA\w+)"`)
	for _, file := range cases(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var parsed struct {
			Tests []struct {
				Name  string `json:"name"`
				Exprs []struct {
					Expr    string           `json:"expr"`
					Samples []map[string]any `json:"exp_samples"`
				} `json:"promql_expr_test"`
			} `json:"tests"`
		}
		if err := yaml.Unmarshal(text, &parsed); err != nil {
			t.Fatal(err)
		}
		for _, test := range parsed.Tests {
			for _, e := range test.Exprs {
				if found := name.FindStringSubmatch(e.Expr); found != nil && len(e.Samples) > 0 {
					fires[found[1]] = true
				}
			}
		}
	}
	for _, r := range readRules(t, "alerts.yaml") {
		if !fires[r.Alert] {
			t.Errorf("%s fires in no unit test", r.Alert)
		}
	}
}

// TestPromtoolMetrics lets promtool read what the agents of simulated nodes
// serve, of every vendor.
func TestPromtoolMetrics(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	for _, name := range []string{"healthy", "infiniband", "shared", "vendors"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := time.Unix(1770000000, 0)
			cluster, err := lab.StartCluster(t.Context(), []lab.Member{{Scenario: scenario(name)}}, t.TempDir(), at)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := cluster.Close(); err != nil {
					t.Error(err)
				}
			}()
			if err := cluster.Step(t.Context(), at.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			text, err := cluster.Nodes()[0].Scrape(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if said, err := lab.PromtoolOn(t.Context(), bytes.NewReader(text), promtool, "check", "metrics"); err != nil {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}
