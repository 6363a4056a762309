package kerneltest_test

import (
	"os"
	"path/filepath"
	"testing"

	"railhead/internal/kernel/kerneltest"
)

func TestTree(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "machine.txtar")
	if err := os.WriteFile(file, []byte("-- proc/sys/kernel/osrelease --\n6.18.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	release, err := kerneltest.Tree(t, file).KernelRelease()
	if err != nil {
		t.Fatal(err)
	}
	if release != "6.18.0" {
		t.Errorf("release %q, want 6.18.0", release)
	}
}

// FuzzUnpack: whatever an archive says, nothing but its directory changes, and
// no link in that leads out of it.
