//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"railhead/hack/test/vm/plan"
)

// carryOut does what the plan says, in its order, and notes in result what happened.
func carryOut(ctx context.Context, p plan.Plan, result *plan.Result) error {
	for _, f := range p.Files {
		if err := copyFile(filepath.Join(plan.Share, f.From), f.To); err != nil {
			return fmt.Errorf("file of the plan: %w", err)
		}
	}
	for _, m := range p.Modules {
		if err := command(ctx, "modprobe", append([]string{m.Name}, m.Params...)...); err != nil {
			return err
		}
	}
	if err := command(ctx, "ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	result.BootSeconds = uptime()
	for _, s := range p.Suites {
		fmt.Printf("guestinit: %s\n", s.Package)
		status, err := runSuite(ctx, s)
		if err != nil {
			return fmt.Errorf("suite %s: %w", s.Package, err)
		}
		result.Exits = append(result.Exits, status)
	}
	if p.Shell {
		return shell(ctx)
	}
	return nil
}

// setEnvironment replaces what the kernel passed to pid 1 by what every program in the guest gets.
func setEnvironment(machine string) error {
	os.Clearenv()
	for name, value := range map[string]string{
		"PATH":    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
		"HOME":    "/root",
		"TERM":    "linux",
		"LC_ALL":  "C.UTF-8",
		plan.InVM: machine,
	} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("environment %s: %w", name, err)
		}
	}
	return nil
}

// command runs a program of the userland to its end. Pid 1 reaps only the children it started itself: a general reaper
// would race with os/exec, and a zombie holds neither memory nor namespaces.
func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// runSuite runs one test binary and returns its exit status. Its output goes straight into the shared directory, so
// that the host has it even when the kernel dies under the test.
func runSuite(ctx context.Context, s plan.Suite) (int, error) {
	out, err := os.Create(filepath.Join(plan.Share, s.Output))
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(plan.Share, s.Binary), s.Args...)
	cmd.Dir = filepath.Join(plan.Share, s.Dir)
	cmd.Stdout, cmd.Stderr = out, out
	status, err := exitStatus(cmd)
	return status, errors.Join(err, out.Close())
}

// shell gives the console to an interactive shell until it exits.
func shell(ctx context.Context) error {
	console, err := os.OpenFile("/dev/ttyS0", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/bin/bash", "-i")
	cmd.Dir = plan.Share
	cmd.Stdin, cmd.Stdout, cmd.Stderr = console, console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	_, err = exitStatus(cmd) // the status is that of the last command typed
	return errors.Join(err, console.Close())
}

// exitStatus runs a program to its end; an error means that it could not be run.
func exitStatus(cmd *exec.Cmd) (int, error) {
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// copyFile puts a copy of from at to, in place of whatever is there.
func copyFile(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o755)
}

// uptime is the number of seconds since the guest's kernel started.
func uptime() float64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return float64(now.Nano()) / 1e9
}
