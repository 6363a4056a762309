//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// openTestCache is a cache in a directory of the test.
func openTestCache(t *testing.T, dir string) *cache {
	t.Helper()
	c, err := openCache(dir, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

func TestProductIsMadeOnce(t *testing.T) {
	t.Parallel()
	c := openTestCache(t, t.TempDir())
	made := 0
	build := func(_ context.Context, out, _ string) error {
		made++
		return os.WriteFile(filepath.Join(out, "file"), nil, 0o644)
	}
	dirs := map[string]bool{}
	for _, inputs := range [][]string{{"a", "b"}, {"a", "b"}, {"ab"}} {
		dir, err := c.product(t.Context(), "thing", inputs, build)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
			t.Error(err)
		}
		dirs[dir] = true
	}
	if made != 2 || len(dirs) != 2 {
		t.Errorf("made %d times in %v", made, dirs)
	}
}

func TestProductThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	c := openTestCache(t, t.TempDir())
	want := errors.New("no network")
	_, err := c.product(t.Context(), "thing", nil, func(_ context.Context, out, _ string) error {
		return errors.Join(os.WriteFile(filepath.Join(out, "half"), nil, 0o644), want)
	})
	if !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
	for _, dir := range []string{c.productsDir(), c.makingDir()} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s has %v, %v", dir, entries, err)
		}
	}
}

func TestOpenCacheRemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, "making", "thing-1", "scratch")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	openTestCache(t, dir)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left from an interrupted run: %v", err)
	}
}

func TestPruneRemovesOnlyTheUnused(t *testing.T) {
	t.Parallel()
	c := openTestCache(t, t.TempDir())
	build := func(_ context.Context, out, _ string) error {
		old := time.Now().Add(-2 * unusedFor) // unpacked packages bring times of long ago
		return os.Chtimes(out, old, old)
	}
	used, err := c.product(t.Context(), "used", nil, build)
	if err != nil {
		t.Fatal(err)
	}
	unused, err := c.product(t.Context(), "unused", nil, build)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * unusedFor)
	if err := errors.Join(os.Chtimes(unused, old, old), c.prune()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(used); err != nil {
		t.Errorf("used: %v", err)
	}
	if _, err := os.Stat(unused); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unused: %v", err)
	}
}

func TestOpenCacheWantsAnAbsolutePath(t *testing.T) {
	t.Parallel()
	if _, err := openCache("cache", t.Logf); err == nil {
		t.Error("no error")
	}
}
