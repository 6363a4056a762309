package kittest

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/testcluster"
)

// machineState is what of this machine a cluster must leave as it was.
type machineState struct {
	Mounts, Links, Namespaces, Cgroups, Processes, Loops, Files []string
}

// look reads the state of this machine. Of processes, control groups and disks,
// only those of the cluster in a directory count: others come and go.
func look(t *testing.T, dir string) machineState {
	t.Helper()
	var s machineState
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		s.Mounts = append(s.Mounts, strings.Join(strings.Fields(line)[3:5], " "))
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		s.Links = append(s.Links, fmt.Sprint(l.Name, " ", l.HardwareAddr))
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, driver.Dir(dir).Cgroup()) {
			s.Cgroups = append(s.Cgroups, path)
		}
		return nil // what vanishes meanwhile is not there
	})
	if err != nil {
		t.Fatal(err)
	}
	s.processes(dir)
	s.Loops = glob("/sys/block/loop*/loop/backing_file", func(file string) bool {
		backing, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(backing), dir)
	})
	s.Files = glob(filepath.Join(dir, "*"), func(string) bool { return true })
	for _, list := range []*[]string{&s.Mounts, &s.Links, &s.Namespaces, &s.Cgroups, &s.Processes} {
		slices.Sort(*list)
	}
	return s
}

// processes finds the namespaces that processes are in, and processes that
// name the directory of a cluster or are in one of its control groups.
func (s *machineState) processes(dir string) {
	for _, proc := range glob("/proc/[0-9]*", func(string) bool { return true }) {
		cmdline, _ := os.ReadFile(proc + "/cmdline")
		cgroup, _ := os.ReadFile(proc + "/cgroup")
		command := strings.ReplaceAll(string(cmdline), "\x00", " ")
		if !strings.Contains(command, dir) && !strings.Contains(string(cgroup), driver.Dir(dir).Cgroup()) {
			continue
		}
		s.Processes = append(s.Processes, proc+" "+command)
		for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc", "cgroup"} {
			if ns, err := os.Readlink(proc + "/ns/" + kind); err == nil {
				s.Namespaces = append(s.Namespaces, ns)
			}
		}
	}
	s.Namespaces = slices.Compact(slices.Sorted(slices.Values(s.Namespaces)))
}

func glob(pattern string, keep func(string) bool) (kept []string) {
	all, _ := filepath.Glob(pattern)
	for _, one := range all {
		if keep(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// killPoints is at how many of the driver's steps it is killed.
func killPoints() int {
	if testcluster.IsNightly() {
		return 20
	}
	return 5
}

// TestLeavesNothing ends clusters in every way and wants the machine to be as
// it was before.
func TestLeavesNothing(t *testing.T) {
	testcluster.Wanted(t)
	program := filepath.Join(t.TempDir(), "cluster")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "railhead/hack/cluster").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ready := func(t *testing.T, c *exec.Cmd, lines *bufio.Scanner) (steps int) {
		t.Helper()
		for lines.Scan() {
			steps++
		}
		if err := c.Wait(); err != nil {
			t.Errorf("up: %v", err)
		}
		return steps
	}
	t.Run("down", func(t *testing.T) { // it also builds what is not built, and tells of that
		leavesNothing(t, program, func(c *exec.Cmd, lines *bufio.Scanner) { ready(t, c, lines) })
	})
	steps := 0
	t.Run("killed when ready", func(t *testing.T) {
		leavesNothing(t, program, func(c *exec.Cmd, lines *bufio.Scanner) {
			steps = ready(t, c, lines)
			killDriver(t, c.Args)
		})
	})
	points := killPoints()
	if steps < points {
		t.Fatalf("the start of a cluster tells %d steps, want at least %d to kill it at", steps, points)
	}
	for i := range points {
		at := 1 + i*(steps-1)/(points-1)
		t.Run(fmt.Sprintf("killed at step %d of %d", at, steps), func(t *testing.T) {
			leavesNothing(t, program, func(c *exec.Cmd, lines *bufio.Scanner) {
				for n := 1; n < at; n++ {
					if !lines.Scan() {
						t.Errorf("this start tells %d steps: %v", n-1, lines.Err())
						break
					}
				}
				if err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
				killDriver(t, c.Args)
				_ = c.Wait() // it was killed
			})
		})
	}
}

// leavesNothing starts a cluster, has something done to it, ends it, and
// compares.
func leavesNothing(t *testing.T, program string, during func(*exec.Cmd, *bufio.Scanner)) {
	t.Helper()
	dir := filepath.Join("/var/tmp", "railhead-"+strings.ReplaceAll(filepath.Base(t.TempDir())+t.Name(), "/", "-"))
	before := look(t, dir)
	up := exec.CommandContext(t.Context(), program, "up", "--dir", dir, "--nodes", "1", "--rails", "2")
	up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	up.Stderr = os.Stderr
	out, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	during(up, bufio.NewScanner(out))
	if out, err := exec.CommandContext(t.Context(), program, "down", "--dir", dir).CombinedOutput(); err != nil {
		t.Errorf("down: %v\n%s", err, out)
	}
	testcluster.Eventually(t, func() string { return cmp.Diff(before, look(t, dir)) })
	if _, err := os.Lstat(dir); err == nil {
		t.Errorf("%s is still there", dir)
	}
}

// killDriver kills the process that up leaves in the background, and nothing
// else: its machines must end by themselves.
func killDriver(t *testing.T, up []string) {
	t.Helper()
	dir := up[slices.Index(up, "--dir")+1]
	for _, proc := range glob("/proc/[0-9]*", func(string) bool { return true }) {
		cmdline, _ := os.ReadFile(proc + "/cmdline")
		args := strings.Split(string(cmdline), "\x00")
		if len(args) > 3 && args[1] == "driver" && args[3] == dir {
			var pid int
			if _, err := fmt.Sscanf(proc, "/proc/%d", &pid); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Logf("driver %d: %v", pid, err) // it may have ended by itself
			}
		}
	}
}

// TestSecondCluster wants two clusters beside each other, and a directory that
// is in use or is no cluster's to be refused.
func TestSecondCluster(t *testing.T) {
	c := require(t)
	if _, err := testcluster.Start(driver.Options{Dir: c.Dir(), Options: options}); err == nil || !strings.Contains(err.Error(), driver.ErrInUse.Error()) {
		t.Errorf("a second cluster in the same directory: %v, want %v", err, driver.ErrInUse)
	}
	dir := t.TempDir()
	mine := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(mine, []byte("years"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := testcluster.Start(driver.Options{Dir: driver.Dir(dir), Options: options}); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("a cluster in a directory of somebody else: %v, want it refused", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a file of somebody else: %v", err)
	}
}
