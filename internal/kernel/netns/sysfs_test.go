package netns_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
)

// TestSysFS shows that the mount is that of the namespace, that it leaves no
// other file open, that it does not keep the namespace alive, and that it is
// harmless once the namespace is gone.
func TestSysFS(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		kerneltest.AddVeth(t, "v0", "v1")
		file := kerneltest.NewNetNS(t)
		kerneltest.MoveLink(t, "v1", file)
		ns := open(t, file)

		before := openFiles(t)
		sys, err := ns.SysFS()
		if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") == "" {
			t.Skipf("parts of /sys are hidden here: %v; run it outside of a container", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sys.Close() }()
		if after := openFiles(t); len(after) != len(before)+1 {
			t.Errorf("open files %v, want one more than %v", after, before)
		}
		dir := filepath.Join("/proc/self/fd", itoa(sys.Fd()))
		if diff := cmp.Diff([]string{"lo", "v1"}, names(t, filepath.Join(dir, "class/net"))); diff != "" {
			t.Errorf("class/net (-want +got):\n%s", diff)
		}
		err = os.WriteFile(filepath.Join(dir, "class/net/v1/mtu"), []byte("1400"), 0)
		if !errors.Is(err, unix.EROFS) {
			t.Errorf("writing: %v, want %v", err, unix.EROFS)
		}

		if err := errors.Join(ns.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		kerneltest.AwaitNoLink(t, "v0") // goes with its peer, which goes with the namespace
		if got := names(t, filepath.Join(dir, "class/net")); got != nil {
			t.Errorf("class/net has %v after the namespace ended, want nothing", got)
		}
	})
}

func TestSysFSNotPermitted(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root is permitted to; run it as another user")
	}
	ns, err := netns.Current()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	if sys, err := ns.SysFS(); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, %v; want %v", sys, err, fs.ErrPermission)
	}
}

func BenchmarkSysFS(b *testing.B) {
	ns, err := netns.Current()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		sys, err := ns.SysFS()
		if errors.Is(err, fs.ErrPermission) {
			b.Skip("mounting sysfs needs CAP_SYS_ADMIN; run the benchmark as root")
		}
		if err != nil {
			b.Fatal(err)
		}
		if err := sys.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !e.Type().IsRegular() { // bonding_masters is no netdev
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}
