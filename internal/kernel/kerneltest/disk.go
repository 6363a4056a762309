package kerneltest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk makes a directory that is a file system of 64 KiB, in NetNS, and returns it.
func SmallDisk(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	must(tb, "mount a small file system", unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
	tb.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// FillDisk fills a SmallDisk with one file until free. There may be room left in the last
// blocks of others.
func FillDisk(tb testing.TB, dir string) (free func()) {
	tb.Helper()
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		tb.Fatalf("the disk takes 1 MiB: %v", err)
	}
	return func() {
		tb.Helper()
		must(tb, "free the disk", os.Remove(filler))
	}
}
