package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"railhead/hack/cluster/driver"
)

// testLimit ends what should not take a second.
const testLimit = 2 * time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == fakeDriver {
		fake(os.Args[2])
	}
	os.Exit(m.Run())
}

// fakeDriver makes the test program a driver that does what a test needs.
const fakeDriver = "fake-driver"

func fake(what string) {
	switch what {
	case "is ready":
		fmt.Printf("one\ntwo\n%s\n", readyLine)
		signal.Ignore(syscall.SIGPIPE)
		<-time.After(testLimit)
	case "fails":
		fmt.Println("one")
		fmt.Fprintln(os.Stderr, prefix+"no room\nfor it")
		os.Exit(1)
	case "ends":
		fmt.Println("one")
	case "is killed":
		fmt.Println("one")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "waits":
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGTERM)
		fmt.Println("one")
		<-told
		fmt.Fprintln(os.Stderr, prefix+"told to end")
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs a command line and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs(append([]string{}, args...)) // nil would be those of the test
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestMistakes wants a command line that cannot be to be refused with what
// could.
func TestMistakes(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	for line, want := range map[string]string{
		"explode":             `unknown command "explode"`,
		"up now":              `unknown command "now"`,
		"stop kubelet":        `"kubelet": want MACHINE/COMPONENT`,
		"stop node1/":         `"node1/": want MACHINE/COMPONENT`,
		"kill node1/a/b":      `"node1/a/b": want MACHINE/COMPONENT`,
		"crash":               "accepts 1 arg(s), received 0",
		"cut node1":           "accepts 2 arg(s), received 1",
		"exec node1":          "requires at least 2 arg(s)",
		"exec node1 --":       "no command after --",
		"logs node1":          `"node1": want MACHINE/COMPONENT`,
		"logs":                "no logs are there",
		"logs node1/kubelet":  "no such file",
		"status":              driver.ErrNotRunning.Error(),
		"crash node1":         driver.ErrNotRunning.Error(),
		"exec node1 ls -la /": driver.ErrNotRunning.Error(),
		"kubectl get nodes":   driver.ErrNotRunning.Error(),
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, append([]string{"--dir", none}, strings.Fields(line)...)...)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q, error %v, want %q in it", out, err, want)
			}
		})
	}
}

// TestDownTwice wants down to be content where nothing is, and to say so: the
// directory may be a slip.
func TestDownTwice(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	for range 2 {
		if out, err := run(t, "down", "--dir", none); err != nil || !strings.Contains(out, none) {
			t.Errorf("%q, %v, want no error and the directory named", out, err)
		}
	}
}

// TestHelp wants every command that is not hidden to be listed in a group.
func TestHelp(t *testing.T) {
	t.Parallel()
	out, err := run(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rootCommand().Commands() {
		if c.Hidden == strings.Contains(out, "\n  "+c.Name()+" ") {
			t.Errorf("help and the command %s, hidden: %t:\n%s", c.Name(), c.Hidden, out)
		}
		if !c.Hidden && c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
	}
}

func TestDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		"one":            filepath.Join(here, "one"),
		"./one/../two/":  filepath.Join(here, "two"),
		"/var/tmp/three": "/var/tmp/three",
		"":               "",
	} {
		if got := driver.At(flag); string(got) != want {
			t.Errorf("%q: %q, want %q", flag, got, want)
		}
	}
}
