package netns_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

// machine is a made-up procfs with a run directory beside it, in which files
// stand for namespaces: links to one file are in the same.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t: t, root: t.TempDir()}
	for _, name := range []string{"ours", "a", "b"} {
		m.write(name)
	}
	m.link("ours", "proc/thread-self/ns/net")
	m.link("ours", "proc/1/ns/net")
	m.write("proc/version")
	return m
}

func (m machine) path(name string) string { return filepath.Join(m.root, name) }

func (m machine) write(name string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o750); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), nil, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) link(namespace, name string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o750); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(m.path(namespace), m.path(name)); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) id(namespace string) netns.ID {
	m.t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(m.path(namespace), &st); err != nil {
		m.t.Fatal(err)
	}
	return netns.ID{Dev: st.Dev, Ino: st.Ino}
}

// byID orders as List does.
func byID(a, b netns.Found) int { return int(a.ID.Ino) - int(b.ID.Ino) }

func TestListMadeUp(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.link("a", "proc/200/ns/net")
	m.link("a", "proc/30/ns/net")
	m.link("b", "proc/31/ns/net")
	m.link("b", "run/netns/pod-2")
	m.link("b", "run/netns/pod-1")
	m.link("ours", "run/netns/host")
	m.link("/dev/null", "run/netns/elsewhere") // a name whose mount is not seen here
	m.link("gone", "proc/40/ns/net")           // ended while it was looked at
	m.link("a", "proc/self/ns/net")

	got, err := netns.List(m.path("proc"))
	if err != nil {
		t.Fatal(err)
	}
	want := []netns.Found{
		{ID: m.id("a"), Path: m.path("proc/30/ns/net"), PID: 30},
		{ID: m.id("b"), Path: m.path("run/netns/pod-1"), PID: 31},
	}
	slices.SortFunc(want, byID)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

func TestListNotPermitted(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything; run it as another user")
	}
	m := newMachine(t)
	m.link("a", "proc/30/ns/net")
	m.link("b", "proc/31/ns/net")
	if err := os.Chmod(m.path("proc/31/ns"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(m.path("proc/31/ns"), 0o700) })

	got, err := netns.List(m.path("proc"))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "1 of 3 processes (31)") {
		t.Errorf("error %v, want %v for 1 of 3 processes", err, fs.ErrPermission)
	}
	var denied *netns.DeniedError
	if !errors.As(err, &denied) || !slices.Equal(denied.PIDs, []int{31}) {
		t.Errorf("error %#v, want process 31 to be denied", err)
	}
	want := []netns.Found{{ID: m.id("a"), Path: m.path("proc/30/ns/net"), PID: 30}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
}

func TestListNoProc(t *testing.T) {
	t.Parallel()
	if _, err := netns.List(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

// TestListNamed finds a namespace that no process is in by its name.
func TestListNamed(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		const dir = "/run/netns"
		if err := unix.Mount("named", "/run", "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		file := kerneltest.NewNetNS(t)
		ns := open(t, file)
		path := filepath.Join(dir, "pod")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("/proc/self/fd/"+itoa(file.Fd()), path, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		before := openFiles(t)
		list, err := netns.List("/proc")
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
		if after := openFiles(t); !slices.Equal(after, before) {
			t.Errorf("open files %v, want those from before: %v", after, before)
		}
		want := netns.Found{ID: ns.ID(), Path: path}
		if !slices.Contains(list, want) {
			t.Errorf("found %+v, want %+v among them", list, want)
		}
		same, err := netns.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = same.Close() }()
		if same.ID() != ns.ID() {
			t.Errorf("%s is %v, want %v", path, same.ID(), ns.ID())
		}
	})
}

// TestListProcess finds, from within a new namespace, the one that the test
// began in by its processes, if it may look into them.
func TestListProcess(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		outside, err := netns.OpenPID(os.Getppid())
		if errors.Is(err, fs.ErrPermission) { // never of root
			t.Skipf("may not look into the parent process: %v; run it as root", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = outside.Close() }()
		list, err := netns.List("/proc")
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(list, func(f netns.Found) bool { return f.ID == outside.ID() && f.PID > 0 })
		if !found && os.Geteuid() == 0 {
			t.Errorf("found %+v, want %v among them", list, outside.ID())
		}
		if slices.ContainsFunc(list, func(f netns.Found) bool { return f.ID == current(t) }) {
			t.Errorf("found %+v, want it without ours", list)
		}
	})
}
