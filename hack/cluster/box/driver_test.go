package box

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// startDriver runs this program as a driver of one machine.
func startDriver(t *testing.T, spec Spec, sabotage sabotage) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	plan, err := json.Marshal(blueprint{Spec: spec, Sabotage: sabotage})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), driverEnv+"="+string(plan))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// killDriver kills a driver and wants its machine to end.
func killDriver(t *testing.T, driver *exec.Cmd, spec Spec) {
	t.Helper()
	if err := driver.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = driver.Wait()
	endsByItself(t, spec)
}

// endsByItself wants all of a machine to end whose driver has; then it clears up
// what cannot: cgroups and the root.
func endsByItself(t *testing.T, spec Spec) {
	t.Helper()
	eventually(t, "no process is left", func() bool { return len(processes(t, spec.Name)) == 0 && !held(t, spec) })
	if err := Sweep(filepath.Dir(spec.Cgroup)); err != nil {
		t.Error(err)
	}
	if err := removeRoot(spec.root()); err != nil {
		t.Error(err)
	}
}

// held reports whether somebody has the lock on a machine's directory: also a first
// process that has not executed yet, and so has the driver's command line.
func held(t *testing.T, spec Spec) bool {
	t.Helper()
	lock, err := lock(spec.Dir)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return true
	case err == nil:
		unlock(lock)
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
	return false
}

// TestDriverKilled kills the driver at each step of a start.
func TestDriverKilled(t *testing.T) {
	for _, name := range allSteps() {
		t.Run(name, func(t *testing.T) {
			spec := newSpec(t, "node1")
			driver, _ := startDriver(t, spec, sabotage{Step: name, How: breakHang})
			awaitHang(t, spec)
			killDriver(t, driver, spec)
		})
	}
}

// TestDriverDies has the driver end before it forks the first process, and right
// after, when that may not have executed yet.
func TestDriverDies(t *testing.T) {
	for _, step := range []string{stepPrepare, stepFork} {
		t.Run(step, func(t *testing.T) {
			spec := newSpec(t, "node1")
			driver, _ := startDriver(t, spec, sabotage{Step: step})
			if err := driver.Wait(); err == nil || err.Error() != "exit status 3" {
				t.Errorf("driver: %v", err)
			}
			endsByItself(t, spec)
		})
	}
}

// TestDriverKilledLater wants a machine with services to end with its driver.
func TestDriverKilledLater(t *testing.T) {
	spec := newSpec(t, "node1")
	driver, out := startDriver(t, spec, sabotage{})
	if line, err := out.ReadString('\n'); line != "started\n" {
		t.Fatalf("driver says %q (%v)", line, err)
	}
	pid := initOf(t, spec)
	own := namespaces(t, pid)
	// Something that takes no notice of its parent, in the namespaces only.
	lost := exec.CommandContext(t.Context(), "nsenter", "-t", itoa(pid), "-a", "setsid", "sleep", "1000")
	if err := lost.Start(); err != nil {
		t.Fatal(err)
	}
	killDriver(t, driver, spec)
	_ = lost.Wait()
	eventually(t, "no process is in its namespaces", func() bool { return !alive(t, own) })
}

// initOf finds the first process of a machine.
func initOf(t *testing.T, spec Spec) int {
	t.Helper()
	files := processes(t, programName)
	files = slices.DeleteFunc(files, func(f string) bool { return !slices.Contains(processes(t, spec.Name), f) })
	if len(files) != 1 {
		t.Fatalf("first processes of %s: %v", spec.Name, files)
	}
	pid, err := strconv.Atoi(filepath.Base(filepath.Dir(files[0])))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
