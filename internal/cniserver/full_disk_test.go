package cniserver

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/kerneltest"
)

// TestFullFileSystem keeps records on a small file system and fills it: ADD fails with
// file and reason, and leaves nothing; DEL of a pod from before works; with room again,
// ADD does.
func TestFullFileSystem(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		dir := kerneltest.SmallDisk(t)
		w := newWorld(t)
		w.stop()
		disk, err := journal.OS(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = disk.Close() })
		w.extend = func(c *Config) {
			if c.Records, err = record.Open(disk, record.File); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		one, two := w.sandbox("box1", "train"), w.sandbox("box2", "train")
		before := w.snapshot(one)
		w.ok(one, cnicall.Add)
		free := kerneltest.FillDisk(t, dir)
		with := w.attachedNow(two)
		w.refused(two, cnicall.Add, cnicall.CodeTryAgain, "ai/train", filepath.Join(dir, record.File), "no space left on device")
		w.rest()
		if diff := cmp.Diff(with, w.attachedNow(two), comparable()...); diff != "" {
			t.Errorf("refused (-before +after):\n%s", diff)
		}
		w.ok(one, cnicall.Check)
		w.ok(one, cnicall.Del)
		if diff := cmp.Diff(before, w.snapshot(one), comparable()...); diff != "" {
			t.Errorf("taken away (-before +after):\n%s", diff)
		}
		w.checkNothingLeft()
		free()
		w.ok(two, cnicall.Add)
		w.ok(two, cnicall.Check)
		w.ok(two, cnicall.Del)
		w.checkNothingLeft()
	})
}
