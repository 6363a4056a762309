// Package cases has the tests that run inside the lab's virtual machines, and what they are made with: links,
// namespaces, Soft-RoCE devices and virtual functions that go away with the test that made them. Everything is made
// with the programs of the guest (`ip`, `rdma`), never with our own code, which is what the tests are about.
package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"railhead/hack/test/vm/plan"
)

// Require skips the test unless it runs inside the lab, and returns the name of the machine. Every test of the lab
// begins with it.
func Require(t *testing.T) (machine string) {
	t.Helper()
	machine = os.Getenv(plan.InVM)
	if machine == "" {
		t.Skip("needs a machine of the VM lab, real RDMA and root; run: make vm")
	}
	return machine
}

// Try runs a program and returns its standard output; the error has what it wrote to standard error.
func Try(name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	// Not the test's context, which is over when its clean-up runs.
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Run runs a program that must succeed and returns its standard output.
func Run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := Try(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// JSON runs a program that must succeed and decodes its standard output. Programs that print nothing for an empty list
// give the zero value.
func JSON[T any](t *testing.T, name string, args ...string) T {
	t.Helper()
	return parsed[T](t, Run(t, name, args...), name, args...)
}

// parsed is what a program printed as JSON; the zero value if it printed nothing.
func parsed[T any](t *testing.T, out, name string, args ...string) T {
	t.Helper()
	var value T
	if strings.TrimSpace(out) == "" {
		return value
	}
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatalf("%s %s: %v in %q", name, strings.Join(args, " "), err, out)
	}
	return value
}

// eventuallyFor bounds Eventually. The kernel does such work within a second; an emulated one on a busy host takes more.
const eventuallyFor = 30 * time.Second

// Eventually waits for something that the kernel does in its own time, such as emptying a deleted namespace. The
// function returns what is still missing, or an empty text when nothing is.
func Eventually(t *testing.T, missing func() string) {
	t.Helper()
	for deadline := time.Now().Add(eventuallyFor); ; time.Sleep(20 * time.Millisecond) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", eventuallyFor, what)
		}
	}
}

// ReadFile is the content of a file, which must be there, without the white space around it.
func ReadFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// ReadLink is where a symbolic link leads, as those of /proc/PID/ns do.
func ReadLink(t *testing.T, path string) string {
	t.Helper()
	target, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// WriteFile writes a value into a file that is there, as those of sysfs are.
func WriteFile(t *testing.T, path, value string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		t.Fatalf("write %q: %v", value, err)
	}
}
