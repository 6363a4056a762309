package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/plan"
)

// TestConfiguration wants Prometheus to ask the agent of each node, by its name,
// and to follow rules that are there.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options plan.Options
		want    map[string]string
	}{
		"IPv4": {plan.Options{Nodes: 2, Rails: 1, IPv4: true}, map[string]string{"node1": "10.99.0.11:5711", "node2": "10.99.0.12:5711"}},
		"IPv6": {plan.Options{Nodes: 1, Rails: 1, IPv6: true}, map[string]string{"node1": "[fd00:99::11]:5711"}},
	} {
		p, err := plan.New(test.options)
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster{Status: &driver.Status{Plan: *p}}
		var got struct {
			RuleFiles     []string `json:"rule_files"`
			ScrapeConfigs []struct {
				StaticConfigs []struct {
					Targets []string
					Labels  map[string]string
				} `json:"static_configs"`
			} `json:"scrape_configs"`
		}
		if err := yaml.Unmarshal([]byte(c.configuration()), &got); err != nil {
			t.Fatal(err)
		}
		targets := map[string]string{}
		for _, s := range got.ScrapeConfigs[0].StaticConfigs {
			targets[s.Labels["instance"]] = strings.Join(s.Targets, ",")
		}
		if diff := cmp.Diff(test.want, targets); diff != "" {
			t.Errorf("%s: targets (-want +got):\n%s", name, diff)
		}
		if len(got.RuleFiles) != len(rules()) {
			t.Errorf("%s: rules %q, want those of %q", name, got.RuleFiles, rules())
		}
	}
	for _, file := range append(rules(), manifests) {
		if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
			t.Error(err)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	got := lines(model.Vector{
		{Metric: model.Metric{"__name__": "b", "pod_name": "x"}, Value: 2},
		{Metric: model.Metric{"__name__": "a"}, Value: 1.5e12},
	})
	if want := "a 1500000000000\nb{pod_name=\"x\"} 2\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
