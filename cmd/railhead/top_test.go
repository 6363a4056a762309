package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"railhead/internal/golden"
	"railhead/internal/top"
)

// sampled answers as a node of internal/top's testdata that is sampled each
// time it is asked, and 10 s went by each time.
func sampled(t *testing.T) startInProcess {
	t.Helper()
	var texts [][]byte
	for _, name := range []string{"node-0s.prom", "node-10s.prom"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "internal", "top", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return func(context.Context) (func(context.Context) ([]byte, error), error) {
		return func(context.Context) ([]byte, error) {
			text := texts[0]
			texts = texts[min(1, len(texts)-1):]
			return text, nil
		}, nil
	}
}

// runTop runs the verb with a node in the process.
func runTop(t *testing.T, inProcess startInProcess, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := topCommand(inProcess)
	var out, errs bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

func TestTopOnce(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"devices.txt":   {"--once"},
		"pods.txt":      {"pods", "--once", "--unit", "B/s", "--sort", "rx"},
		"workloads.txt": {"workloads", "--filter", "jobset"}, // standard output is no terminal
		"pods.json":     {"pods", "-o", "json", "--filter", "worker-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stdout, stderr, err := runTop(t, sampled(t), append(args, "--local", "--interval", "10s")...)
				if err != nil || stderr != "railhead: watching this node, without an agent, for 10s\n" {
					t.Errorf("error %v, standard error %q", err, stderr)
				}
				if filepath.Ext(name) == ".json" {
					stdout = withoutTime(t, stdout)
				}
				golden.Equal(t, filepath.Join("testdata", "top", name), stdout)
			})
		})
	}
}

// withoutTime drops when a frame was made.
func withoutTime(t *testing.T, text string) string {
	t.Helper()
	var f top.Frame
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fields["at"], &f.At); err != nil || f.At.IsZero() {
		t.Errorf("at is %s, error %v", fields["at"], err)
	}
	return strings.Replace(text, string(fields["at"]), `"TIME"`, 1)
}

// TestTopInterval wants samples as far apart as the source needs.
func TestTopInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, _, err := runTop(t, sampled(t), "--local"); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != topInterval {
			t.Errorf("it took %s, want %s", took, topInterval)
		}
	})
}

// TestTopBadInput wants an error that names what was wrong and what would be
// accepted.
func TestTopBadInput(t *testing.T) {
	t.Parallel()
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user == "admin" && password == "secret" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(forbidden.Close)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = w.Write([]byte("# TYPE node_load1 gauge\nnode_load1 0.5\n"))
		}
	}))
	t.Cleanup(stranger.Close)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := func(context.Context) (func(context.Context) ([]byte, error), error) {
		return nil, errors.New("no permission")
	}
	for _, tt := range []struct {
		name      string
		inProcess startInProcess
		args      []string
		want      []string
	}{
		{"view", nil, []string{"rails"}, []string{`"rails"`}},
		{"order", nil, []string{"pods", "--sort", "rail"}, []string{"--sort", `"rail"`, "worst, name"}},
		{"unit", nil, []string{"--unit", "MB/s"}, []string{"--unit", `"MB/s"`, "bit/s and B/s"}},
		{"interval", nil, []string{"--interval", "10ms"}, []string{"--interval", "10ms", "200ms"}},
		{"negative interval", nil, []string{"--interval", "-1s"}, []string{"--interval", "-1s"}},
		{"no interval", nil, []string{"--interval", "0"}, []string{"--interval", "0s is less than 200ms"}},
		{"server that is no agent", nil, []string{"--agent", stranger.URL, "--once"}, []string{stranger.URL, "no railhead agent", "rdma_exporter_build_info"}},
		{"empty page", nil, []string{"--agent", stranger.URL + "/empty", "-o", "json"}, []string{"no railhead agent"}},
		{"window", nil, []string{"--window", "0s"}, []string{"--window"}},
		{"format", nil, []string{"-o", "yaml"}, []string{`"yaml"`, "text, json"}},
		{"two sources", nil, []string{"--local", "--agent", "http://node-7:5711"}, []string{"agent", "local"}},
		{"user without password", nil, []string{"--user", "admin"}, []string{"--user and --password-file go together"}},
		{"no such password file", nil, []string{"--user", "admin", "--password-file", password + ".gone"}, []string{"--password-file", "no such file"}},
		{"no such CA file", nil, []string{"--ca-file", password + ".gone"}, []string{"--ca-file", "no such file"}},
		{"CA file without a certificate", nil, []string{"--ca-file", password}, []string{"no PEM certificate"}},
		{"URL", nil, []string{"--agent", "ftp://node-7"}, []string{`"ftp://node-7"`, top.DefaultAgent}},
		{"agent refuses", nil, []string{"--agent", forbidden.URL, "--once"}, []string{forbidden.URL, "403 Forbidden"}},
		{
			"agent lets in", nil,
			[]string{"--agent", forbidden.URL, "--once", "--user", "admin", "--password-file", password},
			[]string{"418"},
		},
		{"no exporter", nil, []string{"--local"}, []string{"no exporter"}},
		{"exporter fails", broken, []string{"--local"}, []string{"no permission"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stdout, _, err := runTop(t, tt.inProcess, tt.args...)
			if err == nil {
				t.Fatalf("there is no error; standard output %q", stdout)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

// TestNoTerminal tells a file that nobody types into, as /dev/null is.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if !isNoTerminal(null) {
		t.Error("the null device is taken for a terminal")
	}
	_, theirs := pseudoTerminal(t)
	if isNoTerminal(theirs) {
		t.Error("a terminal is not taken for one")
	}
}

func TestNoColorWithoutTerminal(t *testing.T) {
	t.Parallel()
	if hasColor(&bytes.Buffer{}) || isTerminal(&bytes.Buffer{}) || terminalWidth(&bytes.Buffer{}) != 0 {
		t.Error("a buffer is taken for a terminal")
	}
}
