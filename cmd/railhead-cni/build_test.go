package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// built is the program as it is released, built once for all tests that want it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "railhead-cni")
	if err != nil {
		return "", err
	}
	builtDir = dir
	return dir, goBuild(filepath.Join(dir, "railhead-cni"), ".")
})

var builtDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
	os.Exit(code)
}

// goBuild builds a static program.
func goBuild(to, what string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, what)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// plugins returns a directory with the program, under other names too.
func plugins(tb testing.TB, names ...string) string {
	tb.Helper()
	dir, err := built()
	if err != nil {
		without(tb, err)
	}
	to := tb.TempDir()
	for _, name := range append(names, "railhead-cni") {
		if err := os.Link(filepath.Join(dir, "railhead-cni"), filepath.Join(to, name)); err != nil {
			tb.Fatal(err)
		}
	}
	return to
}

// without skips for want of the go command, and fails where it must be there.
func without(tb testing.TB, err error) {
	tb.Helper()
	if os.Getenv("CI") == "true" {
		tb.Fatal(err)
	}
	tb.Skipf("SKIPPED: %v; this test builds the program: put the go command into PATH", err)
}

// TestSize holds the program to its budget: each call loads it.
func TestSize(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(filepath.Join(plugins(t), "railhead-cni"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() > 5<<20 {
		t.Errorf("%d bytes, want at most 5 MiB", info.Size())
	}
}

// TestStandardLibraryOnly wants nothing in the program that takes long to start.
func TestStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		without(t, err)
	}
	if got, want := strings.Join(strings.Fields(string(list)), " "), "railhead/internal/cnicall railhead/cmd/railhead-cni"; got != want {
		t.Errorf("links %s, want %s", got, want)
	}
}
