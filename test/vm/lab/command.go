//go:build linux

package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// errorLines is how much of a failed program's output goes into the error.
const errorLines = 20

// command is a program that ends with this process, however that ends: a machine or a download must not outlive a test
// that ran into its timeout.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// output runs a command and returns its standard output; its error has the program's name and last words.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, lastLines(stdout.String()+stderr.String(), errorLines))
	}
	return stdout.Bytes(), nil
}

// run is output for a command that is run for what it does.
func run(cmd *exec.Cmd) error {
	_, err := output(cmd)
	return err
}

// lastLines is the end of a text, at most n lines.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
