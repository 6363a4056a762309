// Package program starts other programs: such that they end with us, and such
// that an error has what they said last. It never decides which program.
package program

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

// Command is a program that ends with the thread that starts it, however that ends: a build or a download must not
// outlive a test that ran into its timeout.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Output runs a command and returns its standard output; its error has the program's name and last words.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, LastLines(stdout.String()+stderr.String(), errorLines))
	}
	return stdout.Bytes(), nil
}

// Run is Output for a command that is run for what it does.
func Run(cmd *exec.Cmd) error {
	_, err := Output(cmd)
	return err
}

// LastLines is the end of a text, at most n lines.
func LastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
