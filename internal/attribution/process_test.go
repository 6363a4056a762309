package attribution

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/sysfs"
)

// proc is a tree that looks like /proc to its readers.
type proc struct {
	tb   testing.TB
	root string
}

func newProc(tb testing.TB) proc {
	tb.Helper()
	p := proc{tb: tb, root: tb.TempDir()}
	p.do(os.MkdirAll(filepath.Join(p.root, "proc"), 0o755))
	p.do(os.MkdirAll(filepath.Join(p.root, "ns"), 0o755))
	return p
}

func (p proc) fs() sysfs.FS { return sysfs.New(p.root) }

func (p proc) do(err error) {
	p.tb.Helper()
	if err != nil {
		p.tb.Fatal(err)
	}
}

func (p proc) dir(pid int) string { return filepath.Join(p.root, "proc", strconv.Itoa(pid)) }

// podCgroup is the cgroup of a container of a pod.
func podCgroup(uid string) string {
	return "0::/kubepods.slice/kubepods-pod" + underscored(uid) + ".slice/cri-containerd-" + someID + ".scope\n"
}

// start starts a process, in place of one of the same number.
func (p proc) start(pid int, started uint64, cgroup string) {
	p.tb.Helper()
	p.end(pid)
	p.do(os.MkdirAll(filepath.Join(p.dir(pid), "ns"), 0o755))
	p.write(pid, "stat", fmt.Sprintf("%d (a) b) S 1%s %d 0\n", pid, strings.Repeat(" 0", 17), started))
	p.write(pid, "status", fmt.Sprintf("Name:\ta) b\nTgid:\t%d\nPid:\t%d\n", pid, pid))
	p.write(pid, "cgroup", cgroup)
}

// startIn starts a process in a network namespace, which begins with it if
// there is none of that name.
func (p proc) startIn(ns string, pid int, started uint64, cgroup string) {
	p.tb.Helper()
	p.start(pid, started, cgroup)
	p.namespace(ns)
	p.do(os.Link(filepath.Join(p.root, "ns", ns), filepath.Join(p.dir(pid), "ns/net")))
}

func (p proc) end(pid int) {
	p.tb.Helper()
	p.do(os.RemoveAll(p.dir(pid)))
}

func (p proc) write(pid int, name, text string) {
	p.tb.Helper()
	p.do(os.WriteFile(filepath.Join(p.dir(pid), name), []byte(text), 0o600))
}

// namespace returns the identity of a network namespace, which it makes if
// there is none of that name.
func (p proc) namespace(name string) netns.ID {
	p.tb.Helper()
	path := filepath.Join(p.root, "ns", name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		p.do(os.WriteFile(path, nil, 0o600))
	}
	id, err := netns.Stat(path)
	p.do(err)
	return id
}

func TestProcess(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	known := processes{fs: p.fs()}
	p.start(7, 100, podCgroup(someUID))
	want := process{start: 100, group: 7, pod: someUID}
	for range 2 {
		if got, err := known.of(7); err != nil || got != want {
			t.Errorf("got %+v: %v, want %+v", got, err, want)
		}
	}
	p.write(7, "status", "Tgid:\t3\n") // is not read again while the process is the same
	if got, err := known.of(7); err != nil || got != want {
		t.Errorf("got %+v: %v, want %+v", got, err, want)
	}
	p.start(7, 200, "0::/init.scope\n") // another of the same number
	want = process{start: 200, group: 7}
	if got, err := known.of(7); err != nil || got != want {
		t.Errorf("got %+v: %v, want %+v", got, err, want)
	}
	p.write(7, "cgroup", podCgroup(otherUID)) // its runtime moves it
	want.pod = otherUID
	if got, err := known.of(7); err != nil || got != want {
		t.Errorf("got %+v: %v, want %+v", got, err, want)
	}
	p.end(7)
	if _, err := known.of(7); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
	if len(known.known)+len(known.old) != 0 {
		t.Errorf("%d processes are remembered, want none", len(known.known)+len(known.old))
	}
}

// TestRunningProcess reads this process, as the kernel shows it.
func TestRunningProcess(t *testing.T) {
	t.Parallel()
	known := processes{}
	got, err := known.of(os.Getpid())
	if err != nil || got.group != os.Getpid() || got.start == 0 {
		t.Errorf("got %+v: %v, want process %d that was started after boot", got, err, os.Getpid())
	}
	thread, err := known.of(unix.Gettid())
	if err != nil || thread.group != os.Getpid() || thread.start < got.start {
		t.Errorf("got %+v: %v, want a thread of process %d", thread, err, os.Getpid())
	}
}

func TestProcessOdd(t *testing.T) {
	t.Parallel()
	p := newProc(t)
	known := processes{fs: p.fs()}
	for name, text := range map[string]string{"stat": "7 (a) S 1 2 3", "status": "Name:\ta\n"} {
		p.start(7, 100, podCgroup(someUID))
		p.write(7, name, text)
		if _, err := known.of(7); err == nil || !strings.Contains(err.Error(), "proc/7/"+name) || !strings.Contains(err.Error(), "want") {
			t.Errorf("%s: error %v, want one that names the file and what is wanted", name, err)
		}
	}
}

// TestProcessesAreBounded asks for many more processes than are remembered.
func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	known := processes{}
	for pid := range 20 * processesKept {
		known.put(pid, process{start: 1})
		if got, ok := known.get(pid / 2 * 2); !ok || got.start != 1 {
			t.Fatalf("process %d is not remembered", pid/2*2)
		}
		if n := len(known.known) + len(known.old); n > 2*processesKept {
			t.Fatalf("%d processes are remembered, want at most %d", n, 2*processesKept)
		}
	}
}
