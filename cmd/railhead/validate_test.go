package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/golden"
	"railhead/internal/validation"
)

// TestValidate prints what it says of the manifests in testdata/validate.
func TestValidate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "validate")
	for name, args := range map[string][]string{
		"good.txt":       {"-f", "good"},
		"good.json":      {"-f", "good", "-o", "json"},
		"good.conf.txt":  {"-f", "good/pools.yaml", "--conf", "conf.yml"},
		"bad.txt":        {"-f", "bad/network.yaml", "-f", "bad/pool.yaml"},
		"bad.quiet.txt":  {"--quiet", "-f", "bad/network.yaml", "bad/pool.yaml"},
		"bad.yaml":       {"-f", "bad", "-o", "yaml"},
		"pods.txt":       {"-f", "pods", "-n", "train"},
		"duplicates.txt": {"-R", "-f", "duplicates"},
		"quiet.txt":      {"-f", "good", "-q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := railhead(t, append([]string{"validate"}, within(dir, args)...)...)
			got := strings.ReplaceAll(stdout, dir+string(filepath.Separator), "")
			if filepath.Ext(name) == ".txt" {
				got += trailer(stderr, status)
			}
			golden.Equal(t, filepath.Join(dir, name), got)
		})
	}
}

// within puts arguments that are files into a directory.
func within(dir string, args []string) []string {
	var list []string
	for _, a := range args {
		if _, err := os.Stat(filepath.Join(dir, a)); err == nil && !strings.HasPrefix(a, "-") {
			a = filepath.Join(dir, a)
		}
		list = append(list, a)
	}
	return list
}

// TestValidateOrder wants the same of files in either order.
func TestValidateOrder(t *testing.T) {
	t.Parallel()
	answers := func(files ...string) map[string]validation.Object {
		args := []string{"validate", "-o", "json"}
		for _, f := range files {
			args = append(args, "-f", filepath.Join("testdata", "validate", f))
		}
		stdout, _, _ := railhead(t, args...)
		var report validation.Report
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatal(err)
		}
		byName := map[string]validation.Object{}
		for _, o := range report.Objects {
			byName[o.File+" "+o.Kind+" "+o.FullName()] = o
		}
		return byName
	}
	files := []string{"good/pools.yaml", "good/networks.yaml", "good/workload.yaml", "bad/network.yaml"}
	want := answers(files...)
	got := answers(files[3], files[2], files[1], files[0])
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("of %d objects (-in order +turned round):\n%s", len(want), diff)
	}
}

// TestValidateStatus is about what is neither accepted nor refused.
func TestValidateStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "conf.yml")
	if err := os.WriteFile(bad, []byte("enableIPv5: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nested := t.TempDir()
	if err := os.MkdirAll(filepath.Join(nested, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(nested, "below", "x.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pool := filepath.Join("testdata", "validate", "good", "pools.yaml")
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		want   string // in the error
	}{
		{"no files", nil, exitUnreadable, "want -f FILE"},
		{"no such file", []string{"-f", filepath.Join(dir, "absent.yaml")}, exitUnreadable, "absent.yaml"},
		{"empty directory", []string{"-f", t.TempDir()}, exitUnreadable, ".yaml, .yml or .json"},
		{"below a directory", []string{"-f", nested}, exitUnreadable, "-R"},
		{"unknown flag", []string{"--fil", "x"}, exitUnreadable, "--fil"},
		{"format", []string{"-o", "xml"}, exitUnreadable, "text, json, yaml"},
		{"no such configuration", []string{"-f", pool, "--conf", filepath.Join(dir, "absent.yml")}, exitUnreadable, "--conf"},
		{"bad configuration", []string{"-f", pool, "--conf", bad}, exitUnreadable, "enableIPv5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, status := railhead(t, append([]string{"validate"}, tt.args...)...)
			if status != tt.status || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit status %d, standard output %q, standard error %q; want %d and %q", status, stdout, stderr, tt.status, tt.want)
			}
		})
	}
}

// TestValidateStream reads standard input.
func TestValidateStream(t *testing.T) {
	t.Parallel()
	cmd := validateCommand()
	var out bytes.Buffer
	cmd.SetIn(strings.NewReader("apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\nmetadata:\n  name: a\nspec:\n  subnet: 10.0.0.0/24\n  ips: [10.0.0.1]\n"))
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"-f", "-"})
	if err := cmd.Execute(); err != nil {
		t.Error(err)
	}
	if want := "standard input:1: SpiderIPPool a: ok\n1 object accepted\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
