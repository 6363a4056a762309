package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadInput wants an error that names what was wrong and what would be
// accepted, and nothing on standard output. One case after the other: each sets
// the logger that client-go has for the whole process.
func TestBadInput(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
		clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want []string // parts of the error
	}{
		{"unknown flag", []string{"--webhook-port", "1"}, []string{"--webhook-port"}},
		{"argument", []string{"agent"}, []string{`"agent"`}},
		{"format", []string{"--log.format", "xml"}, []string{"--log.format", `"xml"`, "text or json"}},
		{"level", []string{"--log.level", "loud"}, []string{"--log.level", "loud"}},
		{"no kubeconfig", []string{"--kubeconfig", "/no/such/file"}, []string{"--kubeconfig", "/no/such/file"}},
		{"outside of a cluster", nil, []string{"--kubeconfig"}},
		{"address", []string{"--webhook-listen", "5722"}, []string{`webhooks "5722"`, "host:port"}},
		{"health address", []string{"--health-listen", "x"}, []string{`health "x"`, "host:port"}},
		{"URL", []string{"--webhook-url", "10.0.0.1:5722"}, []string{"10.0.0.1:5722", `"https://host:port"`}},
		{"lease", []string{"--leader-lease-duration", "1s"}, []string{"lease duration 1s", "renew deadline of 10s"}},
		{"namespace", []string{"--namespace", "A"}, []string{`namespace "A"`, "lower-case"}},
		{"ConfigMap", []string{"--config-map", "good,B_d"}, []string{`ConfigMap "B_d"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if tt.name != "outside of a cluster" && tt.name != "no kubeconfig" {
				args = append([]string{"--kubeconfig", kubeconfig}, args...)
			}
			var stdout, stderr bytes.Buffer
			if status := run(args, &stdout, &stderr); status != exitFailed {
				t.Errorf("exit status %d, want %d", status, exitFailed)
			}
			if stdout.Len() > 0 {
				t.Errorf("standard output: %q", stdout.String())
			}
			for _, part := range tt.want {
				if !strings.Contains(stderr.String(), part) {
					t.Errorf("error %q does not say %q", stderr.String(), part)
				}
			}
		})
	}
}

// TestExitStatus wants each error to be told, also where something was canceled
// though nobody had told the controller to end.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errors.New("no"), fmt.Errorf("watch: %w", context.Canceled)} {
		var stderr bytes.Buffer
		if status := exitStatus(err, &stderr); status != exitFailed || !strings.Contains(stderr.String(), err.Error()) {
			t.Errorf("%v: exit status %d, errors %q", err, status, stderr.String())
		}
	}
	if status := exitStatus(nil, nil); status != 0 {
		t.Errorf("exit status %d without an error", status)
	}
}

// TestVersion wants one line.
func TestVersion(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if status := run([]string{"--version"}, &stdout, &stderr); status != 0 || !strings.HasPrefix(stdout.String(), "railhead-controller ") || strings.Count(stdout.String(), "\n") != 1 {
		t.Errorf("exit status %d, output %q, errors %q", status, stdout.String(), stderr.String())
	}
}
