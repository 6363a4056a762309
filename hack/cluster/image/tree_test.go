package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
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
		"usr/bin/tool": {mode: 0o755, content: []byte("binary")},
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

// A layer is the same whenever, and in whatever order, its files were read.
func TestLayersOfTheSameFiles(t *testing.T) {
	t.Parallel()
	var layers [2][]byte
	names := []string{"b/two", "a/one", "c"}
	for i := range layers {
		dir, tr := t.TempDir(), tree{}
		for _, name := range names {
			path, when := filepath.Join(dir, filepath.Base(name)), time.Unix(int64(1000*i), 0)
			if err := errors.Join(os.WriteFile(path, []byte(name), 0o644), os.Chtimes(path, when, when), tr.add(name, path)); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if layers[i], err = tr.layer(); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(names)
	}
	if !bytes.Equal(layers[0], layers[1]) {
		t.Error("the layers differ")
	}
}

// A reader that is not ours finds what was written.
func TestWrite(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "image.tar")
	run := command{program: []string{"/tool"}, arguments: []string{"-x"}}
	if err := write(archive, "localhost/test/tool:1", tree{"tool": {mode: 0o755, content: []byte("binary")}}, run); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("localhost/test/tool:1", name.WeakValidation)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := command{program: config.Config.Entrypoint, arguments: config.Config.Cmd}
	if diff := cmp.Diff(run, got, cmp.AllowUnexported(command{})); diff != "" {
		t.Errorf("command line (-want +got):\n%s", diff)
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"railhead": Railhead, Railhead: Railhead, "pause": Pause, "coredns": CoreDNS, "railhead.tar": "", "./railhead": "", "rail": "", "tools:2": "", "localhost/railhead/tools": "", "": "",
	} {
		if got, ok := Named(word); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t, want %q", word, got, ok, want)
		}
	}
}
