package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// listed is an entry of a layer as a test compares it.
type listed struct {
	Name, Target, Content string
	Mode                  fs.FileMode
}

// list reads a layer and holds what must be the same in all entries against them.
func list(t *testing.T, layer []byte) []listed {
	t.Helper()
	var entries []listed
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Gid != 0 || h.Uname+h.Gname != "" {
			t.Errorf("%s: made %s by %d:%d %s:%s", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, listed{h.Name, h.Linkname, string(content), h.FileInfo().Mode()})
	}
}

func TestLayer(t *testing.T) {
	t.Parallel()
	tr := tree{
		"usr/bin/tool": executable([]byte("binary")),
		"tmp":          directory(fs.ModeSticky | 0o777),
		"bin":          symlink("usr/bin"),
		"usr/bin":      directory(0o700),
	}
	layer, err := tr.layer()
	if err != nil {
		t.Fatal(err)
	}
	want := []listed{
		{Name: "bin", Target: "usr/bin", Mode: fs.ModeSymlink | 0o777},
		{Name: "tmp/", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Name: "usr/", Mode: fs.ModeDir | 0o755},
		{Name: "usr/bin/", Mode: fs.ModeDir | 0o700},
		{Name: "usr/bin/tool", Content: "binary", Mode: 0o755},
	}
	if diff := cmp.Diff(want, list(t, layer)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(tr) != 4 {
		t.Errorf("the tree has %d entries after making its layer", len(tr))
	}
}

// A layer must not depend on when its files were written, by whom, or in which order.
func TestLayerOfDirectoriesIsTheSame(t *testing.T) {
	t.Parallel()
	var layers [2][]byte
	names := []string{"b/two", "a/one", "c"}
	for i := range layers {
		dir := t.TempDir()
		for _, name := range names {
			path := filepath.Join(dir, name)
			when := time.Unix(int64(1000*i), 0)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644), os.Chtimes(path, when, when)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("c", filepath.Join(dir, "d")); err != nil {
			t.Fatal(err)
		}
		tr := tree{}
		if err := tr.addDir(dir); err != nil {
			t.Fatal(err)
		}
		var err error
		if layers[i], err = tr.layer(); err != nil {
			t.Fatal(err)
		}
		names[0], names[2] = names[2], names[0]
	}
	if !bytes.Equal(layers[0], layers[1]) {
		t.Error("the layers differ")
	}
	want := []listed{
		{Name: "a/", Mode: fs.ModeDir | 0o755},
		{Name: "a/one", Content: "a/one", Mode: 0o644},
		{Name: "b/", Mode: fs.ModeDir | 0o755},
		{Name: "b/two", Content: "b/two", Mode: 0o644},
		{Name: "c", Content: "c", Mode: 0o644},
		{Name: "d", Target: "c", Mode: fs.ModeSymlink | 0o777},
	}
	if diff := cmp.Diff(want, list(t, layers[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAddDirRefusesSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := (tree{}).addDir(dir); err == nil {
		t.Error("a socket went into an image")
	}
}
