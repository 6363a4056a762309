package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseUsage(t *testing.T) {
	t.Parallel()
	const stat = "42 (a) (b c) S 1 42 42 0 -1 4194560 9 8 7 6 150 50 30 20 20 0 9 0 1234 1000 500"
	const status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"
	got, err := parseUsage(strings.Replace(stat, "(a) (b c)", "(a b)", 1), status)
	if err != nil {
		t.Fatal(err)
	}
	want := usage{cpu: 2500 * time.Millisecond, rss: 1 << 20, peak: 2 << 20}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(usage{})); diff != "" {
		t.Error(diff)
	}
	for name, bad := range map[string][2]string{
		"short stat":   {"42 (a) S 1", status},
		"letters":      {strings.Replace(strings.Replace(stat, "(a) (b c)", "(a)", 1), "150", "x", 1), status},
		"no memory":    {strings.Replace(stat, "(a) (b c)", "(a)", 1), "Name: a\n"},
		"memory in MB": {strings.Replace(stat, "(a) (b c)", "(a)", 1), "VmRSS: 1 MB\nVmHWM: 2 MB"},
	} {
		if _, err := parseUsage(bad[0], bad[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestOwnUsage reads what the kernel says of this process.
func TestOwnUsage(t *testing.T) {
	t.Parallel()
	u, err := usageOf(os.Getpid())
	if err != nil || u.rss == 0 || u.peak < u.rss {
		t.Errorf("%+v, error %v", u, err)
	}
}

// TestRun measures a process that does nothing, beside a server that answers.
func TestRun(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) }))
	defer server.Close()
	var out strings.Builder
	err := run(t.Context(), []string{"-url", server.URL, "-every", "10ms", "-duration", "50ms", "--", "sleep", "60"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CPU ", "% of a core", "MiB resident", "of 7 bytes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"-every", "0s", "a"}, {"-duration", "1s", "a"}, {"-unknown"}} {
		if err := run(context.Background(), args, &strings.Builder{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
