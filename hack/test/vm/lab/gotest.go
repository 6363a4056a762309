//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"railhead/hack/program"
)

// Binary is a test binary of one package that runs in any guest.
type Binary struct {
	// Package is the package's import path.
	Package string
	// Tests are the names of its top-level tests.
	Tests []string

	path   string
	source string // the package's directory
}

// BuildTests builds the static test binaries of the packages that a pattern names, into dir. Packages without tests are
// left out.
func BuildTests(ctx context.Context, pattern, dir string) ([]Binary, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	out, err := program.Output(goCommand(ctx, "list", "-f", format, pattern))
	if err != nil {
		return nil, err
	}
	var binaries []Binary
	for line := range strings.Lines(string(out)) {
		pkg, source, _ := strings.Cut(strings.TrimSpace(line), " ")
		b := Binary{Package: pkg, source: source, path: filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test")}
		if err := program.Run(goCommand(ctx, "test", "-c", "-trimpath", "-o", b.path, pkg)); err != nil {
			return nil, fmt.Errorf("test binary of %s: %w", pkg, err)
		}
		list := program.Command(ctx, b.path, "-test.list", "^Test")
		list.Dir = source
		names, err := program.Output(list)
		if err != nil {
			return nil, fmt.Errorf("tests of %s: %w", pkg, err)
		}
		b.Tests = strings.Fields(string(names))
		binaries = append(binaries, b)
	}
	return binaries, nil
}

// buildProgram builds a static program: pid 1, or one that tests run.
func buildProgram(ctx context.Context, pkg, path string) error {
	if err := program.Run(goCommand(ctx, "build", "-trimpath", "-ldflags=-s -w", "-o", path, pkg)); err != nil {
		return fmt.Errorf("program %s: %w", pkg, err)
	}
	return nil
}

// goCommand is the go command for programs that run without a C library. What it
// builds shares its compiled packages with the programs that are shipped, which
// are built with -trimpath, too.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := program.Command(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	return cmd
}
