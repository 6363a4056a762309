package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		{[]string{"--addresses=on"}, `--addresses "on": want auto or off`},
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
