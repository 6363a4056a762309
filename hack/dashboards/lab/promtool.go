package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Promtool runs promtool and returns what it said. An error has it too.
func Promtool(ctx context.Context, program string, args ...string) (string, error) {
	return PromtoolOn(ctx, nil, program, args...)
}

// PromtoolOn runs promtool on an input.
func PromtoolOn(ctx context.Context, input io.Reader, program string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &said, &said
	if err := cmd.Run(); err != nil {
		return said.String(), fmt.Errorf("%s %q: %w\n%s", program, args, err, said.String())
	}
	return said.String(), nil
}

// Backfill makes blocks of a history in the data directory of a Prometheus that
// has not started yet.
func (h *History) Backfill(ctx context.Context, promtool, dir string) error {
	file := filepath.Join(dir, "history.om")
	if err := h.write(file); err != nil {
		return err
	}
	_, err := Promtool(ctx, promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", file, filepath.Join(dir, "data"))
	return errors.Join(err, os.Remove(file))
}

func (h *History) write(file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	if err := h.OpenMetrics(w); err != nil {
		return err
	}
	return w.Flush()
}
