package kerneltest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSmallDisk writes to a disk that is full, and has room again.
func TestSmallDisk(t *testing.T) {
	t.Parallel()
	NetNS(t, func() {
		dir := SmallDisk(t)
		file := filepath.Join(dir, "file")
		free := FillDisk(t, dir)
		if err := os.WriteFile(file, []byte("text"), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("on a full disk: %v, want %v", err, unix.ENOSPC)
		}
		free()
		if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
			t.Error(err)
		}
	})
}
