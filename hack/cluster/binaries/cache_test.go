package binaries

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// made is a recipe that needs nothing.
type made struct {
	input string
	times atomic.Int32
	// then runs when the program is written.
	then func() error
}

func (*made) family() Family              { return "made" }
func (m *made) inputs() []string          { return []string{m.input} }
func (*made) space() int64                { return 0 }
func (*made) fetch(context.Context) error { return nil }

func (m *made) make(_ context.Context, dir, scratch string) (map[string]string, error) {
	m.times.Add(1)
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "program"), []byte(m.input), 0o755),
		os.WriteFile(filepath.Join(scratch, "object"), nil, 0o644),
	)
	if err == nil && m.then != nil {
		err = m.then()
	}
	return map[string]string{"program": "v1.2.3"}, err
}

func testCache(t *testing.T, dir string) *cache {
	t.Helper()
	return newCache(dir, newLog(t.Output()))
}

func TestProductIsMadeOnce(t *testing.T) {
	t.Parallel()
	c := testCache(t, t.TempDir())
	r := &made{input: "a"}
	for range 2 {
		p, err := c.product(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"program": "v1.2.3"}, p.versions); diff != "" {
			t.Errorf("versions (-want +got):\n%s", diff)
		}
		if got, err := os.ReadFile(filepath.Join(p.dir, programsDir, "program")); err != nil || string(got) != "a" {
			t.Errorf("program is %q, %v", got, err)
		}
	}
	if n := r.times.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
	if entries, err := os.ReadDir(filepath.Join(c.dir, "making")); err != nil || len(entries) > 0 {
		t.Errorf("left in making: %v, %v", entries, err)
	}
}

func TestOtherInputIsAnotherProduct(t *testing.T) {
	t.Parallel()
	c := testCache(t, t.TempDir())
	seen := map[string]bool{}
	for _, input := range []string{"a", "b"} {
		p, err := c.product(t.Context(), &made{input: input})
		if err != nil {
			t.Fatal(err)
		}
		seen[p.dir] = true
	}
	if len(seen) != 2 {
		t.Errorf("products are in %v", seen)
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	c := testCache(t, t.TempDir())
	want := errors.New("no")
	if _, err := c.product(t.Context(), &made{then: func() error { return want }}); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	for _, dir := range []string{c.familiesDir(), filepath.Join(c.dir, "making")} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s has %v, %v", dir, entries, err)
		}
	}
	if _, err := c.product(t.Context(), &made{}); err != nil {
		t.Errorf("the next run: %v", err)
	}
}

func TestRemainsOfAnInterruptedRunAreRemoved(t *testing.T) {
	t.Parallel()
	c := testCache(t, t.TempDir())
	half := filepath.Join(c.dir, "making", "made", "out", programsDir)
	if err := errors.Join(os.MkdirAll(half, 0o755), os.WriteFile(filepath.Join(half, "half"), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	p, err := c.product(t.Context(), &made{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, programsDir, "half")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the product has what another run left: %v", err)
	}
}

func TestDamagedProductSaysWhatToRemove(t *testing.T) {
	t.Parallel()
	c := testCache(t, t.TempDir())
	r := &made{}
	p, err := c.product(t.Context(), r)
	if err == nil {
		err = os.Remove(filepath.Join(p.dir, versionsFile))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.product(t.Context(), r); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "remove "+p.dir) {
		t.Errorf("error %v", err)
	}
}

// Each cache has a lock file of its own open, as another process would.
func TestSecondProcessWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun, finish := make(chan struct{}), make(chan struct{})
	first := &made{then: func() error { close(begun); <-finish; return nil }}
	second := &made{}
	waits := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := testCache(t, dir).product(t.Context(), first); err != nil {
			t.Error(err)
		}
	})
	<-begun
	all.Go(func() {
		c := newCache(dir, newLog(writerFunc(func(line string) {
			if strings.Contains(line, "waiting for another process") {
				close(waits)
			}
		})))
		if _, err := c.product(t.Context(), second); err != nil {
			t.Error(err)
		}
	})
	<-waits
	close(finish)
	all.Wait()
	if a, b := first.times.Load(), second.times.Load(); a != 1 || b != 0 {
		t.Errorf("made %d times by the first and %d times by the second", a, b)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unlock, err := testCache(t, dir).lock(t.Context(), "made")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	c := newCache(dir, newLog(writerFunc(func(string) { cancel() })))
	if _, err := c.product(ctx, &made{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// writerFunc takes lines.
type writerFunc func(line string)

func (f writerFunc) Write(line []byte) (int, error) {
	f(string(line))
	return len(line), nil
}

func TestPruneRemovesOnlyTheUnused(t *testing.T) {
	t.Parallel()
	c := testCache(t, t.TempDir())
	old := time.Now().Add(-2 * unusedFor)
	var dirs []string
	for _, dir := range []string{filepath.Join(c.familiesDir(), "cni-1"), filepath.Join(c.setsDir(), "1")} {
		unused, used := dir, dir+"2"
		err := errors.Join(os.MkdirAll(unused, 0o755), os.MkdirAll(used, 0o755), os.Chtimes(unused, old, old), os.Chtimes(used, old, old), touch(used))
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, unused, used)
	}
	if err := c.prune(); err != nil {
		t.Fatal(err)
	}
	for i, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) != (i%2 == 0) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
