package binaries

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testProduct is a product with one program, and one file in a directory.
func testProduct(t *testing.T, f Family, program string) product {
	t.Helper()
	p := product{family: f, dir: filepath.Join(t.TempDir(), string(f)), versions: map[string]string{program: "v1"}}
	dir := filepath.Join(p.dir, programsDir)
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "."+program), 0o755),
		os.WriteFile(filepath.Join(dir, program), []byte(program), 0o755),
		os.WriteFile(filepath.Join(dir, "."+program, "library"), []byte(program), 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSet(t *testing.T) {
	t.Parallel()
	m := &maker{cache: testCache(t, t.TempDir())}
	if err := os.Mkdir(m.familiesDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	products := []product{testProduct(t, CNI, "bridge"), testProduct(t, Etcd, "etcd"), testProduct(t, Debian, "nft")}
	s, err := m.set(products)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name := range s.paths {
		path, err := s.Path(name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[path] = string(content)
	}
	want := map[string]string{
		filepath.Join(s.CNIDir(), "bridge"): "bridge",
		filepath.Join(s.Dir(), "etcd"):      "etcd",
		filepath.Join(s.Dir(), "nft"):       "nft",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), ".nft/library")); err != nil {
		t.Errorf("what a program needs is not with it: %v", err)
	}
	if _, err := s.Path("kubelet"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not in the set: %v", err)
	}
}

func TestAssembleAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sets", "1")
	p := testProduct(t, Etcd, "etcd")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := assemble(dir, []product{p}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("sets are %v, %v", entries, err)
	}
}

func TestAssembleThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sets", "1")
	twice := []product{testProduct(t, Etcd, "etcd"), testProduct(t, Containerd, "etcd")}
	if err := assemble(dir, twice); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want that of two programs of one name", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 0 {
		t.Errorf("sets are %v, %v", entries, err)
	}
}
