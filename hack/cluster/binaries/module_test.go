package binaries

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/program"
)

const tiny Family = "tiny"

// tinySource is compiled of a module beside it, so that nothing is downloaded.
func tinySource() source {
	return source{
		programs: map[string]compiled{"tiny": {"example.com/tiny/v2", "example.com/tiny/v2"}},
		stamps:   []stamp{{"main.version", "example.com/tiny/v2", whole}},
	}
}

// tinyModule is a family whose program has this text.
func tinyModule(t *testing.T, main string) *module {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(dir, fstest.MapFS{
		"tiny/go.mod": {Data: []byte("module example.com/all\n\ngo 1.26.0\n\ntool example.com/tiny/v2\n\n" +
			"require example.com/tiny/v2 v2.3.4\n\nreplace example.com/tiny/v2 => ./program\n")},
		"tiny/program/go.mod":  {Data: []byte("module example.com/tiny/v2\n\ngo 1.26.0\n")},
		"tiny/program/main.go": {Data: []byte(main)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return testModule(t, golang{sources: dir, version: "go1.2.3 amd64"}, tiny, tinySource())
}

func TestCompile(t *testing.T) {
	t.Parallel()
	m := tinyModule(t, "package main\n\nvar version string\n\nfunc main() { print(version) }\n")
	if err := m.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := testCache(t, t.TempDir()).product(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"tiny": "v2.3.4"}, p.versions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	out, err := program.Command(t.Context(), filepath.Join(p.dir, programsDir, "tiny")).CombinedOutput()
	if err != nil || string(out) != "v2.3.4" {
		t.Errorf("the program says %q, %v", out, err)
	}
}

func TestCompileError(t *testing.T) {
	t.Parallel()
	m := tinyModule(t, "package main\n\nfunc main() { undefinedName() }\n")
	c := testCache(t, t.TempDir())
	_, err := c.product(t.Context(), m)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "undefinedName") || !strings.Contains(err.Error(), "example.com/tiny/v2") {
		t.Errorf("error %v, want one with the package and the compiler's words", err)
	}
	if entries, err := os.ReadDir(c.familiesDir()); err != nil || len(entries) > 0 {
		t.Errorf("families are %v, %v", entries, err)
	}
}

// An interrupted build is no broken one.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := goError(ctx, errors.New("signal: interrupt"), "# runtime"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	c := testCache(t, t.TempDir())
	if _, err := c.product(ctx, tinyModule(t, "package main\n\nfunc main() {}\n")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if entries, err := os.ReadDir(c.familiesDir()); err != nil || len(entries) > 0 {
		t.Errorf("families are %v, %v", entries, err)
	}
}

func TestFetchError(t *testing.T) {
	t.Parallel()
	m := tinyModule(t, "package main\n\nimport \"example.com/nowhere\"\n\nfunc main() { nowhere.Go() }\n")
	if err := m.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "example.com/nowhere") {
		t.Errorf("error %v, want one with the package that is missing", err)
	}
}

func TestProgramWithoutVersion(t *testing.T) {
	t.Parallel()
	s := tinySource()
	s.programs["other"] = compiled{"example.com/other", "example.com/other"}
	_, err := newModule(tinyModule(t, "package main\n").golang, tiny, s, nil)
	if err == nil || !strings.Contains(err.Error(), "program other: go.mod has no version of example.com/other") {
		t.Errorf("error %v", err)
	}
	if _, err := newModule(golang{sources: t.TempDir()}, tiny, s, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestNoGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("RAILHEAD_CACHE", t.TempDir())
	if _, err := Ensure(t.Context(), nil); !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), `"go"`) {
		t.Errorf("error %v, want %v", err, exec.ErrNotFound)
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv("RAILHEAD_CACHE", "relative")
	if _, err := Ensure(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "want an absolute path") {
		t.Errorf("error %v", err)
	}
	t.Setenv("RAILHEAD_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "/caches")
	if dir, err := CacheDir("cluster"); dir != "/caches/railhead/cluster" || err != nil {
		t.Errorf("cache is %s, %v", dir, err)
	}
}

func TestCause(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]error{
		"go: k8s.io/api@v0.36.3: reading https://proxy.example/k8s.io/api/@v/v0.36.3.zip: 403 Forbidden":   ErrRefused,
		"k8s.io/api@v0.36.3: Get \"https://proxy.example/\": dial tcp: lookup proxy.example: no such host": ErrNetwork,
		"k8s.io/api@v0.36.3: module lookup disabled by GOPROXY=off":                                        ErrNetwork,
		"# k8s.io/api/core/v1\nwriting output: write $WORK/b001/_pkg_.a: no space left on device":          ErrSpace,
		"# k8s.io/api/core/v1\ncore/v1/types.go:12:2: undefined: x":                                        nil,
	} {
		err := goError(t.Context(), errors.New("exit status 1"), said)
		if got := cause(said); !errors.Is(got, want) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s\nis taken for %v, want %v", said, got, want)
		}
		if !strings.Contains(err.Error(), said) {
			t.Errorf("error %v, want one with what was said:\n%s", err, said)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &module{source: source{programs: map[string]compiled{"a": {}, "b": {}}}}
	p := progress{packages: []string{"example.com/a", "example.com/b", "runtime"}}
	for _, line := range []string{"runtime", "# example.com/a", "a.go:1:1: bad", "example.com/b"} {
		p.line(line)
	}
	if diff := cmp.Diff([]string{"# example.com/a", "a.go:1:1: bad"}, p.said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if got, want := m.stage(p, dir), "2 of 3 packages compiled, 66 %"; got != want {
		t.Errorf("stage %q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, want := m.stage(p, dir), "1 of 2 programs linked"; got != want {
		t.Errorf("stage %q, want %q", got, want)
	}
}

// hungry is a recipe that needs more disk than there is.
type hungry struct{ made }

func (*hungry) space() int64 { return 1 << 62 }

func TestNoSpace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	if err := checkSpace([]recipe{&made{}}, []string{dir}); err != nil {
		t.Error(err)
	}
	if err := checkSpace([]recipe{&hungry{}}, []string{dir}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v, want %v", err, syscall.ENOSPC)
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, tt := range []struct {
		memory     uint64
		processors int
		want       uint64
	}{
		{24 * gib, 2, 2 * gib},
		{16 * gib, 8, gib},
		{4 * gib, 16, gib / 2},
	} {
		if got := memoryLimit(tt.memory, tt.processors); got != tt.want {
			t.Errorf("%d bytes, %d processors: %d, want %d", tt.memory, tt.processors, got, tt.want)
		}
	}
}
