package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newDiskSpec is a machine with a disk, in an environment that has disks.
func newDiskSpec(t *testing.T) Spec {
	t.Helper()
	spec := newSpec(t, "node1")
	spec.Disk = 64 << 20
	_, noFormat := exec.LookPath("mkfs.ext4")
	_, noLoop := os.Stat("/dev/loop-control")
	if err := errors.Join(noFormat, noLoop); err != nil {
		t.Skipf("earned skip: no disks: %v", err)
	}
	return spec
}

// loops lists the loop devices of a disk.
func loops(t *testing.T, spec Spec) []string {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(text), spec.Dir) {
			list = append(list, file)
		}
	}
	return list
}

// TestDisk wants a disk that can be full without the host noticing, that stays
// over a restart, and that goes with the machine.
func TestDisk(t *testing.T) {
	spec := newDiskSpec(t)
	first := startBox(t, spec)
	_, err := output(t, first, "echo data > /var/lib/data; sync; cat /dev/zero > /var/lib/full")
	if err == nil || !strings.Contains(err.Error(), "No space left on device") {
		t.Errorf("writing more than there is place for: %v", err)
	}
	if _, err := os.Stat(filepath.Join(spec.root(), "var")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the machine's files are on the host's file system (%v)", err)
	}
	if err := first.Halt(); err != nil {
		t.Fatal(err)
	}
	second := startBox(t, spec)
	if got := sh(t, second, "cat /var/lib/data; rm /var/lib/full"); got != "data" {
		t.Errorf("after a restart: %q", got)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the loop device is gone", func() bool { return len(loops(t, spec)) == 0 })
	if _, err := os.Stat(spec.disk()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the disk is left: %v", err)
	}
}

// TestDiskUnfinished wants nobody to start from half a file system, and one
// that cannot be made to leave nothing.
func TestDiskUnfinished(t *testing.T) {
	spec := newDiskSpec(t)
	for _, how := range []breakage{breakFail, breakCrash} {
		if _, err := start(t.Context(), spec, sabotage{Step: "enter root", How: how}); err == nil {
			t.Errorf("%s: no error", how)
		}
		eventually(t, fmt.Sprintf("after %s no loop device is left", how), func() bool { return len(loops(t, spec)) == 0 })
	}
	small := spec
	small.Disk = 1
	if _, err := Start(t.Context(), small); err == nil || !strings.Contains(err.Error(), "disk of 1 bytes") {
		t.Errorf("disk of a byte: %v", err)
	}
	files, err := filepath.Glob(spec.disk() + "*")
	if err != nil || len(files) > 0 {
		t.Errorf("left: %q (%v)", files, err)
	}
	if err := os.WriteFile(spec.disk()+".unfinished", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, startBox(t, spec), "touch /var/lib/data")
}
