package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// suicideEnv makes the test program enter the cgroup that it holds, and try to
// kill everybody there.
const suicideEnv = "RAILHEAD_TEST_CGROUP"

func TestMain(m *testing.M) {
	if path := os.Getenv(suicideEnv); path != "" {
		fmt.Print(suicide(path))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func suicide(path string) error {
	g, err := New(path)
	if err != nil {
		return err
	}
	if err := g.Join(); err != nil {
		return err
	}
	return g.Kill()
}

// newGroup names a cgroup for a test, below one that is shared by all.
func newGroup(t *testing.T, name string) *Group {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("cgroups need root, in CI")
		}
		t.Skip("cgroups need root: run the test as root")
	}
	g, err := New(fmt.Sprintf("railhead-cgrouptest-%d/%s/%s", os.Getpid(), t.Name(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, h := range g.Hierarchies {
			top, _, _ := strings.Cut(g.Path, "/")
			if _, err := os.Stat(filepath.Join(h.Dir, top)); err == nil {
				t.Errorf("%s of %s is left", top, h.Dir)
			}
		}
	})
	return g
}

func TestMakeRemove(t *testing.T) {
	g := newGroup(t, "node1")
	if err := g.Remove(); err != nil {
		t.Errorf("nothing there: %v", err)
	}
	if err := g.Make(); err != nil {
		t.Fatal(err)
	}
	checkReady(t, g)
	for _, h := range g.Hierarchies {
		dir := filepath.Join(h.Dir, g.Path)
		if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
			t.Error(err)
		}
		if h.V2 {
			if text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers")); err != nil || !strings.Contains(string(text), "memory") {
				t.Errorf("controllers %q (%v), want memory", text, err)
			}
		}
	}
	if err := g.Make(); err != nil { // over what is left of another
		t.Fatal(err)
	}
	for _, h := range g.Hierarchies {
		if _, err := os.Stat(filepath.Join(h.Dir, g.Path, "a")); err == nil {
			t.Errorf("%s: what was there before is still there", h.Dir)
		}
	}
	if err := g.Remove(); err != nil {
		t.Fatal(err)
	}
}

// TestParents wants groups that come and go at the same time not to take their
// parents from each other, and to be of use: a cpuset whose parent was made
// anew meanwhile would have no processors and take no process.
func TestParents(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 4 {
		g := newGroup(t, "node"+strconv.Itoa(i))
		wg.Go(func() {
			for range 25 {
				if err := g.Make(); err != nil {
					t.Error(err)
				}
				checkReady(t, g)
				if err := g.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// checkReady wants a cgroup to have what it needs to take processes.
func checkReady(t *testing.T, g *Group) {
	t.Helper()
	for _, h := range g.Hierarchies {
		if !h.has("cpuset") {
			continue
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if text, err := os.ReadFile(filepath.Join(h.Dir, g.Path, file)); err != nil || strings.TrimSpace(string(text)) == "" {
				t.Errorf("%s is %q (%v), want that of the parent", file, text, err)
			}
		}
	}
}

// TestInheritCPUs wants both halves of a cpuset to be inherited, whichever of
// them is there: somebody else who makes the same parent may be half done.
func TestInheritCPUs(t *testing.T) {
	tests := map[string]struct {
		own, parent, want map[string]string
		again             bool // the parent is not ready
	}{
		"new":          {own: cpuset("", ""), parent: cpuset("0-1", "0"), want: cpuset("0-1", "0")},
		"ready":        {own: cpuset("1", "0"), parent: cpuset("0-1", "0"), want: cpuset("1", "0")},
		"no memory":    {own: cpuset("1", ""), parent: cpuset("0-1", "0"), want: cpuset("1", "0")},
		"no processor": {own: cpuset("", "0"), parent: cpuset("0-1", "0"), want: cpuset("0-1", "0")},
		"parent new":   {own: cpuset("", ""), parent: cpuset("", ""), want: cpuset("", ""), again: true},
		"parent half":  {own: cpuset("", ""), parent: cpuset("0-1", ""), want: cpuset("0-1", ""), again: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "node1")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			writeFiles(t, parent, test.parent)
			writeFiles(t, dir, test.own)
			if err := inheritCPUs(dir); isGone(err) != test.again || !test.again && err != nil {
				t.Errorf("error %v, want to be told to begin anew: %t", err, test.again)
			}
			got := map[string]string{}
			for file := range test.want {
				text, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				got[file] = strings.TrimSpace(string(text))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestParentAnew has the parent of a cpuset be made anew, and still be without
// processors, after its processors were read.
func TestParentAnew(t *testing.T) {
	g := newGroup(t, "node1")
	for _, h := range g.Hierarchies {
		if !h.has("cpuset") {
			continue
		}
		parent, _, _ := strings.Cut(g.Path, "/")
		dir := filepath.Join(h.Dir, parent, "node1")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(os.Remove(dir), os.Remove(filepath.Dir(dir))); err != nil {
				t.Error(err)
			}
		})
		if err := setCPUs(dir, "cpuset.cpus", []byte("0\n")); !isGone(err) {
			t.Errorf("error %v, want to be told to begin anew", err)
		}
	}
}

func cpuset(cpus, mems string) map[string]string {
	return map[string]string{"cpuset.cpus": cpus, "cpuset.mems": mems}
}

// writeFiles writes files as a cgroup shows them, with a line's end.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKill wants processes to keep a cgroup from being removed until they are
// killed, which is all that happens to them.
func TestKill(t *testing.T) {
	g := newGroup(t, "node1")
	if err := g.Make(); err != nil {
		t.Fatal(err)
	}
	var sleeping []*exec.Cmd
	for range 3 {
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sleeping = append(sleeping, cmd)
	}
	inside, outside := sleeping[:2], sleeping[2]
	for _, h := range g.Hierarchies {
		child := filepath.Join(h.Dir, g.Path, "child")
		if err := h.make(g.Path + "/child"); err != nil {
			t.Fatal(err)
		}
		for i, dir := range []string{filepath.Dir(child), child} {
			if h.V2 {
				dir = child // only leaves have processes
			}
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(inside[i].Process.Pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	pid := strconv.Itoa(inside[0].Process.Pid)
	if err := g.Remove(); err == nil || !strings.Contains(err.Error(), pid) {
		t.Errorf("remove: %v, want an error that names process %s", err, pid)
	}
	if err := g.Make(); err == nil {
		t.Error("make over a living cgroup: no error")
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range inside {
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("process %d: %v, want killed", cmd.Process.Pid, err)
		}
	}
	if err := outside.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := outside.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("process outside: %v, want only what it was sent", err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

// TestKillCaller wants nobody to kill themselves by mistake.
func TestKillCaller(t *testing.T) {
	g := newGroup(t, "node1")
	if err := g.Make(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), suicideEnv+"="+g.Path)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the caller itself") {
		t.Errorf("%v: %s", err, out)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}
