package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
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
