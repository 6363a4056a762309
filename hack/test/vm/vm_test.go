//go:build linux

// Package vm boots the lab's virtual machines and reports the tests that run inside as subtests of TestVM. It prepares
// and judges; machines_test.go says which machines there are, and package lab builds and boots them.
package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"railhead/hack/test/vm/lab"
)

// options are TestVM's settings, from the environment.
type options struct {
	run   *regexp.Regexp // which guest tests, by machine/package/test
	keep  string         // directory in which the boots' files stay
	shell bool           // end every machine in a shell on the terminal
	lab   lab.Config
}

// readOptions reads the environment; README.md lists the variables.
func readOptions(t *testing.T) options {
	t.Helper()
	o := options{
		keep:  os.Getenv("RAILHEAD_VM_KEEP"),
		shell: os.Getenv("RAILHEAD_VM_SHELL") == "1",
		lab: lab.Config{
			Mirror:  os.Getenv("RAILHEAD_VM_MIRROR"),
			Refresh: os.Getenv("RAILHEAD_VM_REFRESH") == "1",
			Logf:    t.Logf,
		},
	}
	var err error
	if o.run, err = regexp.Compile(os.Getenv("RAILHEAD_VM_RUN")); err != nil {
		t.Fatalf("RAILHEAD_VM_RUN: %v", err)
	}
	if dir := os.Getenv("RAILHEAD_CACHE"); dir != "" {
		o.lab.Dir = filepath.Join(dir, "vm")
	} else if o.lab.Dir, err = lab.DefaultDir(); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestVM boots every machine that has a selected test and reports what ran inside.
func TestVM(t *testing.T) {
	if os.Getenv("RAILHEAD_VM") != "1" {
		t.Skip("boots virtual machines, which takes minutes, root and a Debian mirror; run: make vm")
	}
	o := readOptions(t)
	work := selectWork(t, o.run)
	if len(work) == 0 {
		t.Fatalf("no guest test matches %q", o.run)
	}
	machines := make([]lab.Machine, len(work))
	for i, w := range work {
		machines[i] = w.machine
	}
	l, err := lab.Prepare(t.Context(), o.lab, machines)
	if err != nil {
		t.Fatal(err)
	}
	var summary []string
	for _, w := range work {
		t.Run(w.machine.Name, func(t *testing.T) {
			summary = append(summary, bootAndReport(t, l, w, o))
		})
	}
	for _, line := range summary {
		t.Log(line)
	}
}

// machineWork is a machine and the tests to run in it.
type machineWork struct {
	machine    lab.Machine
	selections []lab.Selection
}

// selectWork builds the machines' test binaries and selects tests by machine/package/test.
func selectWork(t *testing.T, run *regexp.Regexp) []machineWork {
	t.Helper()
	built := map[string][]lab.Binary{} // by package pattern
	var work []machineWork
	for _, m := range machines() {
		w := machineWork{machine: m}
		for _, s := range m.Suites {
			if _, done := built[s.Packages]; !done {
				var err error
				if built[s.Packages], err = lab.BuildTests(t.Context(), s.Packages, t.TempDir()); err != nil {
					t.Fatal(err)
				}
			}
			for _, b := range built[s.Packages] {
				names := slices.DeleteFunc(slices.Clone(b.Tests), func(name string) bool {
					return s.Tests != nil && !s.Tests(name) || !run.MatchString(m.Name+"/"+b.Package+"/"+name)
				})
				if len(names) > 0 {
					w.selections = append(w.selections, lab.Selection{Binary: b, Run: names})
				}
			}
		}
		if len(w.selections) > 0 {
			work = append(work, w)
		}
	}
	return work
}

// bootAndReport boots one machine, makes a subtest of each test that ran inside, and returns one line about it all.
func bootAndReport(t *testing.T, l *lab.Lab, w machineWork, o options) string {
	t.Helper()
	dir := t.TempDir()
	if o.keep != "" {
		dir = filepath.Join(o.keep, w.machine.Name)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	var terminal *os.File
	if o.shell {
		var err error
		if terminal, err = os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
			t.Fatalf("shell in the machine: %v", err)
		}
		t.Cleanup(func() { _ = terminal.Close() })
	}
	boot, err := l.Boot(t.Context(), w.machine, w.selections, dir, terminal)
	if err != nil {
		t.Fatal(err)
	}
	passed, failed := 0, 0
	for _, suite := range boot.Suites {
		t.Run(filepath.Base(suite.Package), func(t *testing.T) {
			for _, result := range suite.Tests {
				if t.Run(result.Name, func(t *testing.T) { judge(t, result) }) {
					passed++
				} else {
					failed++
				}
			}
			if suite.Exit != 0 {
				t.Errorf("%s ended with status %d\n%s", suite.Package, suite.Exit, suite.Outside)
			}
		})
	}
	if len(boot.Trouble) > 0 {
		t.Errorf("%s\nend of the console:\n%s", strings.Join(boot.Trouble, "\n"), tail(boot.Console, 60))
	}
	return fmt.Sprintf("%s: kernel %s, %d passed, %d failed, tests started after %.1f s, %.1f s in all",
		w.machine.Name, boot.Kernel, passed, failed, boot.BootSeconds, boot.Seconds)
}

// judge makes a guest test's result this test's own. A test that skips inside the lab has not been given what the lab
// is for, unless it says that this is meant.
func judge(t *testing.T, r lab.TestResult) {
	t.Helper()
	if text := r.Output; r.Status != lab.Passed {
		t.Log("\n" + text)
	} else if text = said(text); text != "" {
		t.Log("\n" + text)
	}
	for _, name := range r.UnearnedSkips {
		t.Errorf("%s skipped in the lab", name)
	}
	switch r.Status {
	case lab.Passed:
	case lab.Skipped:
		if len(r.UnearnedSkips) == 0 {
			t.Skip("skipped on purpose")
		}
	default:
		t.Errorf("inside the machine: %s", r.Status)
	}
}

// said is what a test that passed logged itself, without the frame that go test puts around it.
func said(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if framed := strings.TrimSpace(line); !strings.HasPrefix(framed, "=== ") && !strings.HasPrefix(framed, "--- PASS") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// tail is the end of a text, at most n lines.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
