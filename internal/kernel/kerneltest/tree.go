// Package kerneltest gives tests a kernel to talk to: directory trees that look
// like sysfs, network namespaces, links in them, and disks that can be full. It is
// for tests only and never touches the host it runs on.
package kerneltest

import (
	"os"
	"path/filepath"
	"testing"

	"railhead/internal/kernel/archive"
	"railhead/internal/kernel/sysfs"
)

// Tree unpacks the archive in a file, such as testdata/dgx-h100.txtar, into
// a temporary directory and returns it as a file system.
func Tree(tb testing.TB, file string) sysfs.FS {
	tb.Helper()
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		tb.Fatal(err)
	}
	return TreeString(tb, string(text))
}

// TreeString is Tree for an archive that stands in the test.
func TreeString(tb testing.TB, text string) sysfs.FS {
	tb.Helper()
	dir := tb.TempDir()
	if err := archive.Unpack([]byte(text), dir); err != nil {
		tb.Fatal(err)
	}
	return sysfs.New(dir)
}
