package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

// TestAttached wants the addresses of a pod's interfaces, by their names.
func TestAttached(t *testing.T) {
	t.Parallel()
	got, err := attached(`[{"name":"railhead-cluster","interface":"eth0","ips":["10.244.1.5"],"default":true},` +
		`{"name":"spiderpool/gpu1-macvlan","interface":"net1","ips":["172.16.11.3"]},{"name":"x","interface":"net2"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"eth0": "10.244.1.5", "net1": "172.16.11.3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := attached(""); err == nil {
		t.Error("a pod without the annotation has addresses")
	}
}

func TestPings(t *testing.T) {
	t.Parallel()
	one := worker{addresses: map[string]string{"eth0": "10.244.1.5", "net1": "172.16.11.3", "net2": "172.16.12.3"}}
	other := worker{addresses: map[string]string{"eth0": "10.244.2.5", "net1": "172.16.11.4", "net2": "172.16.12.4"}}
	want := "(ping -c 1 -W 5 -I 172.16.11.3 172.16.11.4; ping -c 1 -W 5 -I 172.16.12.3 172.16.12.4) | grep -e 'bytes from' -e '100% packet loss'"
	if got := pings(one, other); got != want {
		t.Errorf("it types %s, want %s", got, want)
	}
}

// TestTyped wants a shell to take words as they were meant.
func TestTyped(t *testing.T) {
	t.Parallel()
	words := []string{"-o", `jsonpath={.a}{"\n"}`, "it's $HOME", "plain", ""}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", typed(`printf '%s|'`, words)).Output()
	if err != nil || string(out) != strings.Join(words, "|")+"|" {
		t.Errorf("a shell takes it as %q, %v: want %q", out, err, words)
	}
}

// TestTheDaemonSet wants what is applied to be the printed DaemonSet without
// limits, and nothing else less.
func TestTheDaemonSet(t *testing.T) {
	t.Chdir("../..")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", theDaemonSet).Output()
	if err != nil {
		t.Fatal(err)
	}
	printed, err := os.ReadFile(acceptance + "workload.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got, want appsv1.DaemonSet
	if err := errors.Join(yaml.UnmarshalStrict(out, &got), yaml.UnmarshalStrict(printed, &want)); err != nil {
		t.Fatal(err)
	}
	if len(want.Spec.Template.Spec.Containers[0].Resources.Limits) == 0 {
		t.Error("the printed DaemonSet has no limits")
	}
	want.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-printed +applied):\n%s", diff)
	}
}
