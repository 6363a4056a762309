package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/golden"
)

// TestLogs reads what go test printed of a module with all ways to fail.
func TestLogs(t *testing.T) {
	t.Parallel()
	logs, err := filepath.Glob("testdata/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs: %v, %v", logs, err)
	}
	for _, file := range logs {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			log, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, strings.TrimSuffix(file, ".log")+".txt", render(parse(string(log))))
		})
	}
}

// TestInterrupted reads a log that ends before the package does.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	log := "=== RUN   TestOne\n    one_test.go:7: no address\n--- FAIL: TestOne (1.00s)\n=== RUN   TestTwo\n    two_test.go:9: begun\n"
	want := "--- FAIL: TestOne\n    one_test.go:7: no address\n--- no result: TestTwo\n    two_test.go:9: begun\n"
	if diff := cmp.Diff(want, render(parse(log))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRoom has more to say than there is room for: of each entry there is the beginning.
func TestRoom(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 12 {
		fmt.Fprintf(&log, "=== RUN   Test%d\n    a_test.go:1: reason %d\n%s--- FAIL: Test%d (0.00s)\n", i, i, strings.Repeat("        table\n", 100), i)
	}
	log.WriteString("FAIL\tsample\t1.0s\n")
	got := render(parse(log.String()))
	if n := strings.Count(got, "\n"); n > most {
		t.Errorf("%d lines, want at most %d:\n%s", n, most, got)
	}
	for i := range 12 {
		if want := fmt.Sprintf("a_test.go:1: reason %d\n", i); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if want := "… 98 more lines"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}
