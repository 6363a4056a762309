package box

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRootRemoval wants links not to be followed and mounts to be left alone.
func TestRootRemoval(t *testing.T) {
	requireRoot(t)
	dir := t.TempDir()
	outside, root := filepath.Join(dir, "outside"), filepath.Join(dir, "root")
	for _, d := range []string{outside, filepath.Join(root, "a/b"), filepath.Join(root, "mnt")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	keep := filepath.Join(outside, "keep")
	if err := errors.Join(os.WriteFile(keep, nil, 0o600), os.Symlink(outside, filepath.Join(root, "a/link")), os.Symlink(keep, filepath.Join(root, "file"))); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(outside, filepath.Join(root, "mnt"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	unmount := func() { _ = unix.Unmount(filepath.Join(root, "mnt"), unix.MNT_DETACH) }
	t.Cleanup(unmount)
	if err := removeRoot(root); err == nil || !strings.Contains(err.Error(), filepath.Join(root, "mnt")) {
		t.Errorf("with a mount in it: %v, want an error that names it", err)
	}
	if _, err := os.Stat(filepath.Join(root, "a/b")); err != nil {
		t.Errorf("something was removed: %v", err)
	}
	// Also if nobody had looked.
	parent, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(parent) }()
	if err := removeAt(parent, "root", root); err == nil {
		t.Error("with a mount in it: no error")
	}
	unmount()
	if err := removeRoot(root); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("a file outside was removed: %v", err)
	}
	if err := removeRoot(root); err != nil {
		t.Errorf("when it is gone: %v", err)
	}
}
