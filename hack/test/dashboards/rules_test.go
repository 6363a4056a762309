package dashboards

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"railhead/hack/dashboards/promql"
	"railhead/internal/counters"
)

// Where things are, from here.
const (
	dashboardsDir = "../../../charts/railhead/files/dashboards"
	rulesDir      = "../../../charts/railhead/files/rules"
	runbooks      = "../../../docs/alerts.md"
)

// ruleFile is a file of Prometheus' rules.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Record      string            `json:"record"`
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// readRules returns the rules of a file in their order.
func readRules(t *testing.T, name string) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rulesDir, name))
	if err != nil {
		t.Fatal(err)
	}
	var file ruleFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", name)
	}
	return all
}

// schema knows what the exporter and the recording rules make.
func schema(t *testing.T) *promql.Schema {
	t.Helper()
	s := promql.NewSchema(counters.Families())
	for _, r := range readRules(t, "recording.yaml") {
		if err := s.Record(r.Record, r.Expr); err != nil {
			t.Errorf("recording rule %s: %v", r.Record, err)
		}
	}
	return s
}

// TestRecordingRules parses them against the families of the exporter.
func TestRecordingRules(t *testing.T) {
	t.Parallel()
	schema(t)
	for _, r := range readRules(t, "recording.yaml") {
		if level, _, ok := strings.Cut(r.Record, ":"); !ok || level == "" || r.Alert != "" {
			t.Errorf("%q is no name of a recording rule, want level:metric:how", r.Record)
		}
	}
}

// TestAlerts parses the alerts, looks up each label that their texts use, and
// wants a runbook for each.
func TestAlerts(t *testing.T) {
	t.Parallel()
	s := schema(t)
	text, err := os.ReadFile(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	books := runbookAnchors(string(text))
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, r := range readRules(t, "alerts.yaml") {
		labels, err := s.Labels(r.Expr)
		if err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		for key, text := range r.Annotations {
			for _, found := range label.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(labels, found[1]) {
					t.Errorf("%s: %s uses label %q, there is %q", r.Alert, key, found[1], labels)
				}
			}
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q, want critical, warning or info", r.Alert, r.Labels["severity"])
		}
		for _, key := range []string{"summary", "description"} {
			if r.Annotations[key] == "" {
				t.Errorf("%s has no %s", r.Alert, key)
			}
		}
		anchor, ok := strings.CutPrefix(r.Annotations["runbook"], "docs/alerts.md#")
		if !ok || !books[anchor] || anchor != strings.ToLower(r.Alert) {
			t.Errorf("%s: runbook %q is no chapter of docs/alerts.md", r.Alert, r.Annotations["runbook"])
		}
	}
}

// TestRunbooks finds chapters of alerts that are gone.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(runbooks)
	if err != nil {
		t.Fatal(err)
	}
	books := runbookAnchors(string(text))
	for _, r := range readRules(t, "alerts.yaml") {
		delete(books, strings.ToLower(r.Alert))
	}
	for anchor := range books {
		t.Errorf("docs/alerts.md has a chapter on %s, which is no alert", anchor)
	}
}

// runbookAnchors returns the anchors of the chapters on alerts.
func runbookAnchors(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^### (RDMA\w+)$`).FindAllStringSubmatch(text, -1) {
		anchors[strings.ToLower(found[1])] = true
	}
	return anchors
}
