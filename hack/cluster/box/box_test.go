package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// driverEnv makes the test program a driver: what it holds is a machine.
const driverEnv = "RAILHEAD_TEST_BOX_DRIVER"

func TestMain(m *testing.M) {
	Init()
	if plan := os.Getenv(driverEnv); plan != "" {
		drive(plan)
	}
	os.Exit(m.Run())
}

// The steps of a driver after which it dies if it is told to.
const (
	stepPrepare = "driver prepares"
	stepFork    = "driver forks"
)

// drive starts a machine, says so, and waits to be killed.
func drive(plan string) {
	var b blueprint
	err := json.Unmarshal([]byte(plan), &b)
	if err == nil && (b.Sabotage.Step == stepPrepare || b.Sabotage.Step == stepFork) {
		err = driveUntil(b)
	} else if err == nil {
		_, err = start(context.Background(), b.Spec, b.Sabotage)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// driveUntil starts a machine as far as it is told, and dies.
func driveUntil(b blueprint) error {
	l := launch{spec: b.Spec}
	if err := l.prepare(context.Background()); err != nil {
		return err
	}
	if b.Sabotage.Step == stepFork {
		if _, err := l.fork(); err != nil {
			return err
		}
	}
	os.Exit(3)
	return nil
}

// testLimit ends what should not take a second.
const testLimit = 2 * time.Minute

// newSpec is a machine for a test; nothing but logs may be left of it.
func newSpec(t *testing.T, name string) Spec {
	t.Helper()
	requireRoot(t)
	id := strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' {
			return '-'
		}
		return r
	}, t.Name())
	path := fmt.Sprintf("railhead-boxtest-%d/%s/%s", os.Getpid(), id, name)
	spec := Spec{Name: name + "-" + id, Hostname: name, Dir: filepath.Join(t.TempDir(), name), Cgroup: path}
	t.Cleanup(func() { checkGone(t, spec) })
	return spec
}

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("machines of namespaces need root, in CI")
	}
	t.Skip("machines of namespaces need root: run the test as root")
}

// startBox starts a machine that is closed with the test.
func startBox(t *testing.T, spec Spec) *Box {
	t.Helper()
	b, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// sh runs a script in a machine and returns what it wrote to its stdout.
func sh(t *testing.T, b *Box, script string) string {
	t.Helper()
	out, err := output(t, b, script)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(out)
}

// output runs a script in a machine and returns what it wrote to its stdout, and
// in the error what it wrote to its stderr.
func output(t *testing.T, b *Box, script string) (string, error) {
	t.Helper()
	var stdout, stderr strings.Builder
	err := b.Run(t.Context(), Command{Args: []string{"sh", "-c", script}, Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), err
}

// eventually waits for what the kernel does in its own time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(testLimit); !holds(); {
		if time.Now().After(limit) {
			t.Fatalf("%s: still not so after %v", what, testLimit)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// checkGone finds processes, cgroups and mounts of a machine that has ended.
func checkGone(t *testing.T, spec Spec) {
	t.Helper()
	if list := processes(t, spec.Name); len(list) > 0 {
		t.Errorf("processes %v of %s are left", list, spec.Name)
	}
	if dirs := cgroups(t, spec.Cgroup); len(dirs) > 0 {
		t.Errorf("cgroups %q are left", dirs)
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	if mounts := mountsBelow(string(mountinfo), spec.Dir); len(mounts) > 0 {
		t.Errorf("mounts %q are left", mounts)
	}
	if _, err := os.Lstat(spec.root()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("root %s is left (%v)", spec.root(), err)
	}
}

// processes lists those that have a word on their command line.
func processes(t *testing.T, word string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		text, err := os.ReadFile(file) // one that has ended has none
		return err != nil || !slices.ContainsFunc(bytes.Split(text, []byte{0}), func(w []byte) bool { return string(w) == word })
	})
}

// cgroups lists the directories of a cgroup.
func cgroups(t *testing.T, path string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/sys/fs/cgroup/*/" + path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/sys/fs/cgroup/" + path); err == nil {
		dirs = append(dirs, path)
	}
	return dirs
}

// namespaces are the machine's, as links in /proc show them.
func namespaces(t *testing.T, pid int) []string {
	t.Helper()
	var list []string
	for _, kind := range []string{"net", "uts", "ipc", "pid", "mnt", "cgroup"} {
		id, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, id)
	}
	return list
}

// alive reports whether any process of the host is in one of the namespaces. A
// dead one that nobody has waited for is in none but that of its number.
func alive(t *testing.T, namespaces []string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/ns/*")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		id, err := os.Readlink(file)
		return err == nil && !strings.HasPrefix(id, "pid:") && slices.Contains(namespaces, id)
	})
}

// TestNamespaces wants all six to be other ones than the host's, and the same
// for the programs of a machine.
func TestNamespaces(t *testing.T) {
	b := startBox(t, newSpec(t, "node1"))
	own, ours := namespaces(t, b.PID()), namespaces(t, os.Getpid())
	for i := range own {
		if own[i] == ours[i] {
			t.Errorf("namespace %s is the host's", own[i])
		}
	}
	got := strings.Fields(sh(t, b, `for n in net uts ipc pid mnt cgroup; do readlink /proc/self/ns/$n; done`))
	if !slices.Equal(got, own) {
		t.Errorf("namespaces of a program %q, of the machine %q", got, own)
	}
}
