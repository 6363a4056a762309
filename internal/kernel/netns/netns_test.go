package netns_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	ns, err := netns.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if got := ns.ID().String(); got != link {
		t.Errorf("ID %s, want %s", got, link)
	}
	var st unix.Stat_t
	if err := unix.Fstat(ns.FD(), &st); err != nil {
		t.Fatal(err)
	}
	if got, want := ns.ID(), (netns.ID{Dev: st.Dev, Ino: st.Ino}); got != want {
		t.Errorf("ID %+v, want %+v", got, want)
	}
	if err := ns.Close(); err != nil {
		t.Fatal(err)
	}
	if ns.FD() != -1 {
		t.Errorf("file descriptor %d after Close, want -1", ns.FD())
	}
}

func TestOpenSame(t *testing.T) {
	t.Parallel()
	open := map[string]func() (*netns.NS, error){
		"current": netns.Current,
		"pid":     func() (*netns.NS, error) { return netns.OpenPID(os.Getpid()) },
	}
	want, err := netns.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = want.Close() }()
	for name, open := range open {
		ns, err := open()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if ns.ID() != want.ID() {
			t.Errorf("%s: %v, want %v", name, ns.ID(), want.ID())
		}
		if err := ns.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path, text string
		is               error
	}{
		{name: "nothing", path: filepath.Join(dir, "none"), text: "no such file", is: fs.ErrNotExist},
		{name: "file", path: file, text: "want a namespace"},
		{name: "pipe without a writer", path: pipe, text: "want a namespace"},
		{name: "namespace of another kind", path: "/proc/self/ns/uts", text: "want network"},
		{name: "process that is not there", path: "/proc/2147483647/ns/net", text: "no such file", is: fs.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ns, err := netns.Open(tt.path)
			if err == nil {
				t.Fatalf("opened as %v", ns.ID())
			}
			for _, want := range []string{tt.path, tt.text} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %q is not %v", err, tt.is)
			}
		})
	}
}

// open opens a namespace that a test made.
func open(t *testing.T, file *os.File) *netns.NS {
	t.Helper()
	ns, err := netns.Open("/proc/self/fd/" + itoa(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}

func TestNSKeepsNamespaceAlive(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "v0", "v1")
		file := kerneltest.NewNetNS(t)
		kerneltest.MoveLink(t, "v1", file)
		ns := open(t, file)
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		err := ns.Do(func() error {
			if got, want := links(t), []string{"lo", "v1"}; !slices.Equal(got, want) {
				t.Errorf("links %v, want %v", got, want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := ns.Close(); err != nil {
			t.Fatal(err)
		}
		kerneltest.AwaitNoLink(t, "v0")
	})
}
