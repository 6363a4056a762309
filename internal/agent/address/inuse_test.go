package address

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/kerneltest"
	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
	"railhead/internal/kernel/sysfs"
)

// TestInUse wants the addresses of pods' namespaces of both families, and not
// ours, those of loopback or those of a link, and nothing to stay open.
func TestInUse(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		root := t.TempDir()
		pod := namedNetNS(t, root, "pod")
		namedNetNS(t, root, "empty")
		kerneltest.AddVeth(t, "here", "there")
		kerneltest.AddAddress(t, "here", netip.MustParsePrefix("10.0.0.1/24"))
		kerneltest.MoveLink(t, "there", pod)
		inside, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", pod.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		err = inside.Do(func() error {
			kerneltest.SetUp(t, "there")
			kerneltest.AddAddress(t, "there", netip.MustParsePrefix("10.0.0.2/24"))
			kerneltest.AddAddress(t, "there", netip.MustParsePrefix("fd00::2/64"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		before := openFiles(t)
		got, err := inUse(node.Running(sysfs.New(root)))
		if err != nil {
			t.Fatal(err)
		}
		where := inside.ID().String()
		want := map[netip.Addr]string{netip.MustParseAddr("10.0.0.2"): where, netip.MustParseAddr("fd00::2"): where}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("in use (-want +got):\n%s", diff)
		}
		if after := openFiles(t); after != before {
			t.Errorf("%d files are open, and %d were before", after, before)
		}
	})
}

// TestInUseBlind wants an error where nothing can be told of the node.
func TestInUseBlind(t *testing.T) {
	t.Parallel()
	if _, err := inUse(node.Running(sysfs.New(t.TempDir()))); err == nil {
		t.Error("no error without a proc")
	}
}

// namedNetNS makes a namespace with a name in a root of files, whose proc has
// none but ourselves.
func namedNetNS(t *testing.T, root, name string) *os.File {
	t.Helper()
	ns := kerneltest.NewNetNS(t)
	path := filepath.Join(root, "run/netns", name)
	for _, dir := range []string{filepath.Dir(path), filepath.Join(root, "proc")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/proc/thread-self", filepath.Join(root, "proc/thread-self")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", ns.Fd()), path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	return ns
}

// openFiles is how many files the process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
