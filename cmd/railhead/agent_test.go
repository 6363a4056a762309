package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"railhead/internal/agent"
	"railhead/internal/simulation"
)

// TestAgentFlags wants flags that make no sense to be refused by name, with what
// would be accepted, before anything is started.
func TestAgentFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--metrics.interval.traffic=1ns"}, "--metrics.interval.traffic 1ns: want at least 100ms"},
		{[]string{"--metrics.interval.slow=-1s"}, "--metrics.interval.slow -1s: want at least"},
		{[]string{"--kubernetes=on"}, `--kubernetes "on": want auto or off`},
		{[]string{"--addresses=maybe"}, `--addresses "maybe": want auto, on or off`},
		{[]string{"--addresses=on", "--kubernetes=off"}, "--addresses=on --kubernetes=off: addresses are granted over Kubernetes"},
		{[]string{"--addresses=on", "--addresses-dir=here"}, `--addresses-dir "here": want an absolute path`},
		{[]string{"--addresses=on", "--simulate=../../scenarios/healthy.yaml"}, "--addresses=on: the Kubernetes of a simulated node grants none"},
		{[]string{"--cni=maybe"}, `--cni "maybe": want auto, on or off`},
		{[]string{"--cni=on", "--addresses=off"}, "--cni=on --addresses=off: pods are attached with their addresses"},
		{[]string{"--cni=on", "--cni-bin-dir=bin"}, `--cni-bin-dir "bin": want an absolute path, or --cni=off`},
		{[]string{"--cni=on", "--simulate=../../scenarios/healthy.yaml"}, "--cni=on: a simulated node has no container runtime"},
		{[]string{"--addresses-dir=here"}, `--addresses-dir "here": want an absolute path, or --addresses=off`},
		{[]string{"--listen="}, `--listen "": want host:port`},
		{[]string{"--simulate="}, `--simulate "": want a file`},
		{[]string{"--simulate=nothing.yaml"}, "--simulate: open nothing.yaml: no such file"},
		{[]string{"--simulate=../../scenarios/healthy.yaml", "--kubeconfig=y"}, "--kubeconfig: a simulated node has"},
		{[]string{"--simulate=testdata/no-such-rail.yaml", "--node-name=y"}, "the node has none of the netdevs"},
		{[]string{"--log.format=xml"}, `--log.format "xml": want text or json`},
		{[]string{"--kubernetes=off", "--metrics.compat=telegraf"}, `"telegraf"`},
		{[]string{"--kubernetes=off", "--metrics.qp-counters=maybe"}, `"maybe"`},
		{[]string{"--kubernetes=off", "--metrics.include=("}, "metric filter: include"},
		{[]string{"more"}, `unknown command "more"`},
	} {
		var stdout, stderr bytes.Buffer
		if status := run(append([]string{"agent"}, test.args...), &stdout, &stderr); status != exitFailed {
			t.Errorf("agent %v: status %d, want %d", test.args, status, exitFailed)
		}
		if !strings.Contains(stderr.String(), test.want) {
			t.Errorf("agent %v says %q, want %q in it", test.args, stderr.String(), test.want)
		}
	}
}

// TestGiveAddresses wants pods to be given addresses by an agent that simulates
// nothing, and by one that simulates RDMA on their node only if it is told to.
func TestGiveAddresses(t *testing.T) {
	t.Parallel()
	onNode, asked := &simulation.Scenario{RealNode: true}, &rest.Config{}
	for _, test := range []struct {
		addresses  string
		scenario   *simulation.Scenario
		kubernetes *rest.Config
		want       string
		wantErr    string
	}{
		{"auto", nil, asked, "/journal", ""},
		{"auto", onNode, asked, "", ""},
		{"on", nil, asked, "/journal", ""},
		{"on", onNode, asked, "/journal", ""},
		{"on", nil, nil, "", "--addresses=on: addresses are granted over Kubernetes, and the agent is not in a cluster: want --kubeconfig"},
		{"off", nil, asked, "", ""},
		{"off", onNode, nil, "", ""},
	} {
		f := &agentFlags{addresses: test.addresses, scenario: test.scenario, journalDir: "/journal"}
		config := &agent.Config{Kubernetes: test.kubernetes}
		err := f.giveAddresses(config)
		if config.AddressesDir != test.want || err != nil != (test.wantErr != "") || err != nil && err.Error() != test.wantErr {
			t.Errorf("--addresses=%s, simulation %v, Kubernetes %v: directory %q, error %v, want %q, %q",
				test.addresses, test.scenario != nil, test.kubernetes != nil, config.AddressesDir, err, test.want, test.wantErr)
		}
	}
}

// TestSweep wants the directories of simulated nodes to go whose agents are gone,
// and no others.
func TestSweep(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	used, lock, err := nodeDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	left, killed, err := nodeDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(parent, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(parent)
	for dir, want := range map[string]bool{used: true, left: false, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}
