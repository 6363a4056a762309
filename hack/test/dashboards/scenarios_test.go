package dashboards

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"railhead/hack/dashboards/lab"
)

// world is a simulated cluster and the alerts that fire in it sooner or later,
// by their severity.
type world struct {
	name                    string
	members                 []lab.Member
	critical, warning, info []string
}

func (w *world) fires() map[string][]string {
	return map[string][]string{"critical": w.critical, "warning": w.warning, "info": w.info}
}

func scenario(name string) string { return "../../../scenarios/" + name + ".yaml" }

// worlds are the clusters in which the alerts are tried. A node that is well is
// beside each that is not, as in a real cluster.
func worlds() []world {
	well := lab.Member{Scenario: scenario("healthy")}
	return []world{
		{name: "healthy", members: []lab.Member{well, {Scenario: scenario("healthy"), Name: "gpu-a16"}}},
		{
			name: "shared", members: []lab.Member{{Scenario: scenario("shared")}},
			info: []string{"RDMAPodAttributionBlind"},
		},
		{
			name: "sick-rail", members: []lab.Member{well, {Scenario: scenario("sick-rail")}},
			critical: []string{"RDMAPCIeStall", "RDMAPortDown", "RDMARetriesExceeded"},
			warning: []string{
				"RDMAAckTimeouts", "RDMAFatalQPErrors", "RDMAICRCErrors", "RDMALinkDegraded", "RDMAPCIeStall", "RDMAPHYErrors",
				"RDMAPortFlapping", "RDMARailImbalance", "RDMASequenceErrorsHigh",
			},
			info: []string{"RDMAConfigDrift"},
		},
		{
			name: "storm", members: []lab.Member{
				well,
				{Scenario: scenario("storm")},
				{Scenario: scenario("healthy"), Name: "gone", Gone: 10 * time.Minute},
			},
			critical: []string{"RDMADiscards", "RDMAPauseOccupancyHigh", "RDMAPauseStorm", "RDMARetriesExceeded"},
			warning: []string{
				"RDMACNPIgnored", "RDMACollectorFailing", "RDMAConnectFailures", "RDMADeviceQuarantined", "RDMADiscards",
				"RDMAECNNotReacting", "RDMAExporterDown", "RDMAPFCOnWrongPriority", "RDMAPauseOccupancyHigh", "RDMASampleStale",
				"RDMATrafficNotLossless",
			},
			info: []string{"RDMAConfigDrift", "RDMAPodAttributionBlind", "RDMAReceiverNotReady"},
		},
		{
			name: "infiniband", members: []lab.Member{{Scenario: scenario("infiniband")}},
			info: []string{"RDMACounterSaturated"},
		},
		{
			name: "vendors", members: []lab.Member{{Scenario: scenario("vendors")}},
			warning: []string{"RDMASequenceErrorsHigh"}, // a software device without a lossless network
		},
	}
}

// How long the clusters run, and how often they are looked at.
const (
	worldStep  = 30 * time.Second
	worldSteps = 76
)

// unitTest is a file of promtool's unit tests.
type unitTest struct {
	RuleFiles          []string   `json:"rule_files"`
	EvaluationInterval string     `json:"evaluation_interval"`
	Tests              []ruleCase `json:"tests"`
}

type ruleCase struct {
	Name     string            `json:"name"`
	Interval string            `json:"interval"`
	Input    []lab.InputSeries `json:"input_series"`
	Exprs    []exprCase        `json:"promql_expr_test"`
}

type exprCase struct {
	Expr     string      `json:"expr"`
	EvalTime string      `json:"eval_time"`
	Samples  []expSample `json:"exp_samples"`
}

type expSample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// TestScenarios lets each cluster run for 38 minutes of its own time, lets
// promtool evaluate the rules over what its exporters served, and wants exactly
// those alerts that the scenario was made for.
func TestScenarios(t *testing.T) {
	t.Parallel()
	promtool := tool(t, "promtool")
	wanted := metricsOfRules(t)
	for _, w := range worlds() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := lab.NewHistory(time.Unix(1770000000, 0), worldStep, func(name string) bool { return wanted[name] })
			if err := lab.Simulate(t.Context(), w.members, h, worldSteps); err != nil {
				t.Fatal(err)
			}
			if _, err := lab.Promtool(t.Context(), promtool, "test", "rules", w.unitTest(t, h)); err != nil {
				t.Error(err)
			}
		})
	}
}

// unitTest writes the test that the alerts of a world fire and no others.
func (w *world) unitTest(t *testing.T, h *lab.History) string {
	t.Helper()
	var samples []expSample
	for severity, alerts := range w.fires() {
		for _, alert := range alerts {
			samples = append(samples, expSample{Labels: `{alertname="` + alert + `", severity="` + severity + `"}`, Value: 1})
		}
	}
	var rules []string
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		path, err := filepath.Abs(filepath.Join(rulesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, path)
	}
	text, err := yaml.Marshal(unitTest{
		RuleFiles: rules, EvaluationInterval: "30s",
		Tests: []ruleCase{{
			Name: w.name, Interval: worldStep.String(), Input: h.Input(),
			Exprs: []exprCase{{
				Expr:     `group by (alertname, severity) (last_over_time(ALERTS{alertstate="firing"}[1h]))`,
				EvalTime: (worldStep * (worldSteps - 1)).String(), Samples: samples,
			}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// metricsOfRules returns the names of all series that rules ask for.
func metricsOfRules(t *testing.T) map[string]bool {
	t.Helper()
	s := schema(t)
	names := map[string]bool{}
	for _, file := range []string{"recording.yaml", "alerts.yaml"} {
		for _, r := range readRules(t, file) {
			found, err := s.Names(r.Expr)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range found {
				names[name] = true
			}
		}
	}
	return names
}

// TestEveryAlertHasAScenario wants each alert to fire in a simulated cluster.
func TestEveryAlertHasAScenario(t *testing.T) {
	t.Parallel()
	for _, r := range readRules(t, "alerts.yaml") {
		severity := r.Labels["severity"]
		if !slices.ContainsFunc(worlds(), func(w world) bool { return slices.Contains(w.fires()[severity], r.Alert) }) {
			t.Errorf("%s fires with severity %s in no simulated cluster", r.Alert, severity)
		}
	}
}
