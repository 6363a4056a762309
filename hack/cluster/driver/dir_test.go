package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// newDir names a directory for a cluster, which does not exist yet.
func newDir(t *testing.T) Dir {
	t.Helper()
	return Dir(filepath.Join(t.TempDir(), "cluster"))
}

// acquired is a directory with the lock held until release is called.
func acquired(t *testing.T, d Dir) (release func() error) {
	t.Helper()
	release, err := d.acquire()
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// list names everything below a directory.
func list(t *testing.T, d Dir) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(string(d), func(path string, _ fs.DirEntry, err error) error {
		if path != string(d) {
			names = append(names, strings.TrimPrefix(path, string(d)+"/"))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return names
}

func gone(t *testing.T, d Dir) {
	t.Helper()
	if _, err := os.Lstat(string(d)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v, want it gone; in it are %q", d, err, list(t, d))
	}
}

func TestAcquireRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dir  Dir
		want string
	}{
		"none":          {"", "want an absolute path"},
		"relative path": {"clusters/one", `"clusters/one" of the cluster: want an absolute path`},
		"long path":     {Dir("/var/tmp/" + strings.Repeat("x", 100)), "the path of its socket has 121 bytes; want at most 107"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := test.dir.acquire(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// TestForeignDirectory wants a directory with somebody's files to be refused
// and left alone by all that removes.
func TestForeignDirectory(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	write(t, filepath.Join(string(d), "node1/root/thesis.txt"), "years")
	before := list(t, d)
	if _, err := d.acquire(); err == nil || !strings.Contains(err.Error(), `has "node1" in it`) {
		t.Errorf("acquire: %v, want an error that names what is in it", err)
	}
	if err := d.Sweep(); err != nil {
		t.Errorf("sweep: %v", err)
	}
	if err := d.Down(t.Context()); err != nil {
		t.Errorf("down: %v", err)
	}
	if diff := cmp.Diff(before, list(t, d)); diff != "" {
		t.Errorf("files of somebody else (-before +after):\n%s", diff)
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	release := acquired(t, d)
	write(t, d.Kubeconfig(), "config")
	if _, err := d.acquire(); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), string(d)) {
		t.Errorf("second acquire: %v, want %v, with the directory", err, ErrInUse)
	}
	if err := d.Sweep(); !errors.Is(err, ErrInUse) {
		t.Errorf("sweep: %v, want %v", err, ErrInUse)
	}
	if _, err := os.Stat(d.Kubeconfig()); err != nil {
		t.Errorf("a file of the cluster that runs: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := d.Sweep(); err != nil {
		t.Errorf("sweep after it ended: %v", err)
	}
	gone(t, d)
	if err := d.Sweep(); err != nil {
		t.Errorf("sweep where nothing is: %v", err)
	}
}

// TestAcquireCleans wants all that a dead cluster left to be gone, but nothing
// that a link in it leads to.
func TestAcquireCleans(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	if err := acquired(t, d)(); err != nil { // as if the process had died
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside/file")
	write(t, outside, "not ours")
	write(t, d.Log("node1", "kubelet"), "said")
	write(t, d.Kubeconfig(), "config")
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(string(d), "node1/link")); err != nil {
		t.Fatal(err)
	}
	release := acquired(t, d)
	if diff := cmp.Diff([]string{lockName}, list(t, d)); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
	if err := errors.Join(d.remove(), release()); err != nil {
		t.Error(err)
	}
	gone(t, d)
}

// TestRemoveLeavesTheNext wants the end of a cluster to leave alone what the
// next one has made of the directory once the lock was gone.
func TestRemoveLeavesTheNext(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	stale, err := d.ownAndLock()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.remove(); err != nil {
		t.Fatal(err)
	}
	release := acquired(t, d) // before the last owner let go
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.acquire(); !errors.Is(err, ErrInUse) {
		t.Errorf("acquire: %v, want %v", err, ErrInUse)
	}
	if err := errors.Join(d.remove(), release()); err != nil {
		t.Error(err)
	}
	gone(t, d)
}

// TestLockRemovedMeanwhile wants a lock that nobody can see to be worth
// nothing.
func TestLockRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	if err := d.own(); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Create(d.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	if err := d.stillThere(opened); err != nil {
		t.Errorf("while it is there: %v", err)
	}
	if err := os.Remove(d.lockFile()); err != nil {
		t.Fatal(err)
	}
	if err := d.stillThere(opened); !errors.Is(err, errRemoved) {
		t.Errorf("once it was removed: %v, want %v", err, errRemoved)
	}
	write(t, d.lockFile(), "another's")
	if err := d.stillThere(opened); !errors.Is(err, errRemoved) {
		t.Errorf("once it is another: %v, want %v", err, errRemoved)
	}
}

// TestOneAtATime wants no two of many that come and go at the same time to have
// the directory at once.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	var owners, turns atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				release, err := d.acquire()
				if errors.Is(err, ErrInUse) || errors.Is(err, errRemoved) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				turns.Add(1)
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d have the directory", n)
				}
				mine := filepath.Join(string(d), "mine")
				err = os.WriteFile(mine, nil, 0o600)
				owners.Add(-1)
				if err := errors.Join(err, d.remove(), release()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if turns.Load() == 0 {
		t.Error("nobody ever had the directory")
	}
	if err := d.Sweep(); err != nil {
		t.Error(err)
	}
	gone(t, d)
}

// TestDownEndsOwner has another process hold the lock, and wants it told to end
// and its directory removed.
func TestDownEndsOwner(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	lock, err := d.ownAndLock()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	cmd.ExtraFiles = []*os.File{lock} // a lock is of the open file, wherever it is
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.WriteAt(fmt.Appendf(nil, "%-10d\n", cmd.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := d.Down(t.Context()); err != nil {
		t.Errorf("down: %v", err)
	}
	gone(t, d)
	select {
	case err := <-ended:
		if err == nil || err.Error() != "signal: terminated" {
			t.Errorf("the owner ended with %v, want SIGTERM", err)
		}
	case <-time.After(testLimit):
		t.Error("the owner has not ended")
	}
}

// TestSignalSpares wants nobody to get a signal for a lock that is free, though
// the file has a number.
func TestSignalSpares(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	if err := d.signal(unix.SIGKILL); err != nil {
		t.Errorf("without a directory: %v", err)
	}
	if err := acquired(t, d)(); err != nil { // the file has our number
		t.Fatal(err)
	}
	if err := d.signal(unix.SIGKILL); err != nil {
		t.Errorf("with a lock that is free: %v", err)
	}
	release := acquired(t, d)
	write(t, d.lockFile(), "")
	if err := d.signal(unix.SIGKILL); err != nil {
		t.Errorf("with an owner that is about to write its number: %v", err)
	}
	if err := errors.Join(d.remove(), release()); err != nil {
		t.Error(err)
	}
}

func TestCgroup(t *testing.T) {
	t.Parallel()
	one, other := Dir("/var/tmp/one").Cgroup(), Dir("/var/tmp/other").Cgroup()
	if one == other {
		t.Errorf("two directories share the control group %s", one)
	}
	if same := Dir("/var/tmp/one/").Cgroup(); same != one {
		t.Errorf("one directory has the control groups %s and %s", one, same)
	}
}
