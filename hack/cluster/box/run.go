package box

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// Command is a program to be run in a machine. As with [exec.Cmd], files are
// handed to it as they are, and other readers and writers are copied from and
// to; nothing is the null device.
type Command struct {
	Args           []string // the program first, looked up in PATH if it has no slash
	Env            []string // beside that of the machine
	Dir            string   // where it runs, if not in /
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// ExitError is how a program ended that did not end well.
type ExitError struct {
	Program string
	Status  unix.WaitStatus
}

func (e *ExitError) Error() string { return e.Program + ": " + describe(e.Status) }

// ExitCode is the program's exit status, or as in a shell 128 and the signal
// that ended it.
func (e *ExitError) ExitCode() int {
	if e.Status.Signaled() {
		return 128 + int(e.Status.Signal())
	}
	return e.Status.ExitStatus()
}

// Run runs a program in the machine, in all its namespaces and its cgroup, and
// waits for it. A program that ends otherwise than with 0 is an [*ExitError];
// one that is not there is [fs.ErrNotExist]. When ctx ends, the program and
// its process group are killed.
func (b *Box) Run(ctx context.Context, c Command) error {
	if len(c.Args) == 0 {
		return fmt.Errorf("run in machine %s: no program", b.spec.Name)
	}
	status, err := b.run(ctx, c)
	switch {
	case err != nil:
		return fmt.Errorf("run %s in machine %s: %w", c.Args[0], b.spec.Name, err)
	case status != 0:
		return &ExitError{Program: c.Args[0], Status: status}
	}
	return nil
}

// run is Run with the status for a result.
func (b *Box) run(ctx context.Context, c Command) (unix.WaitStatus, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var stdio stdio
	defer stdio.close()
	if err := stdio.open(c); err != nil {
		return 0, err
	}
	what := order{Verb: verbRun, Run: &invocation{Args: c.Args, Env: c.Env, Dir: c.Dir}}
	id, answer, err := b.orders.post(what, stdio.theirs...)
	if err != nil {
		return 0, err
	}
	stdio.start()
	r, err := b.finish(ctx, id, answer)
	// The caller's writers are not written to any more when this returns.
	if drainErr := stdio.drain(); err == nil {
		err = drainErr
	}
	switch {
	case err != nil:
		return 0, err
	case r.Status == nil:
		return 0, errors.New("reply has no status")
	}
	return unix.WaitStatus(*r.Status), nil
}

// finish waits for a program to end, and kills it at the end of ctx.
func (b *Box) finish(ctx context.Context, id uint64, answer <-chan reply) (reply, error) {
	r, err := await(ctx, b.orders.ended, answer)
	if err == nil || ctx.Err() == nil {
		return r, err
	}
	// It may end at this moment; then there is nothing to interrupt.
	over := context.WithoutCancel(ctx)
	_, _ = b.orders.call(over, order{Verb: verbInterrupt, Running: id})
	if _, endErr := await(over, b.orders.ended, answer); errors.Is(endErr, errEnded) {
		return r, endErr
	}
	return r, err
}
