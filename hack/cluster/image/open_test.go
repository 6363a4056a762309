package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// made is an image with one file and the archive's path.
func made(t *testing.T, name string) (Image, string) {
	t.Helper()
	dir, archive := t.TempDir(), filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte(name), 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := FromDir(archive, name, dir, "/tool", "-x")
	if err != nil {
		t.Fatal(err)
	}
	return image, archive
}

func TestFromDir(t *testing.T) {
	t.Parallel()
	const name = "localhost/test/tool:1"
	image, archive := made(t, name)
	want := Image{Names: []string{name}, Path: archive, ID: image.ID}
	if diff := cmp.Diff(want, image); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, _ := made(t, name)
	if image.ID != again.ID || !strings.HasPrefix(image.ID, "sha256:") {
		t.Errorf("made twice: %s and %s", image.ID, again.ID)
	}
	// A reader that is not ours must agree.
	read, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := read.ConfigName(); err != nil || id.String() != image.ID {
		t.Errorf("id %s, %v; ours is %s", id, err, image.ID)
	}
	config, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/tool", "-x"}, config.Config.Entrypoint); diff != "" {
		t.Errorf("entry point (-want +got):\n%s", diff)
	}
}

// ociArchive is an OCI layout in an archive: an image as it is, or as the only one of an index for its platform.
func ociArchive(t *testing.T, architecture string, indexed bool) []byte {
	t.Helper()
	config := &v1.ConfigFile{OS: "linux", Architecture: architecture}
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "localhost/test/oci:1"})
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if indexed {
		index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
		err = path.AppendIndex(index, name)
	} else {
		err = path.AppendImage(image, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// archiveOf is an archive of these files.
func archiveOf(tb testing.TB, files map[string]string) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// gzipped compresses a whole archive.
func gzipped(t *testing.T, archive []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(archive); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOpen(t *testing.T) {
	t.Parallel()
	const (
		arch   = runtime.GOARCH
		config = `{"os":"linux","architecture":"` + arch + `","rootfs":{"type":"layers","diff_ids":["sha256:00"]}}`
		list   = `[{"Config":"c","RepoTags":["localhost/test/saved:1"],"Layers":["l"]}]`
	)
	tests := []struct {
		name    string
		archive []byte
		want    []string // names
		err     string   // or this error
	}{
		{"layout", ociArchive(t, arch, false), []string{"localhost/test/oci:1"}, ""},
		{"layout with an index", ociArchive(t, arch, true), []string{"localhost/test/oci:1"}, ""},
		{"layout for another machine", ociArchive(t, "pdp11", false), nil, "it is for linux on pdp11"},
		{"index for another machine", ociArchive(t, "pdp11", true), nil, "no image for linux on " + arch + " among its 1"},
		{"saved, without a configuration", archiveOf(t, map[string]string{"manifest.json": list, "l": ""}), nil, "file c is missing"},
		{"saved, without a layer", archiveOf(t, map[string]string{"manifest.json": list, "c": `{"os":"linux","architecture":"` + arch + `","rootfs":{"diff_ids":["sha256:` + strings.Repeat("0", 64) + `"]}}`}), nil, "layer l is missing"},
		{"saved, with too few layers", archiveOf(t, map[string]string{"manifest.json": `[{"Config":"c"}]`, "c": `{"os":"linux","architecture":"` + arch + `","rootfs":{"diff_ids":["sha256:` + strings.Repeat("0", 64) + `"]}}`}), nil, "0 layers, but its configuration lists 1"},
		{"saved, with a bad digest", archiveOf(t, map[string]string{"manifest.json": list, "c": config, "l": ""}), nil, "file c: "},
		{"saved, two", archiveOf(t, map[string]string{"manifest.json": `[{},{}]`}), nil, "lists 2 images"},
		{"saved, no list", archiveOf(t, map[string]string{"manifest.json": `{`}), nil, "file manifest.json: "},
		{"some other archive", archiveOf(t, map[string]string{"README": "hello"}), nil, `but ["README"]`},
		{"compressed", gzipped(t, archiveOf(t, nil)), nil, "gunzip"},
		{"no archive", []byte(strings.Repeat("text\n", 200)), nil, "invalid tar header"},
		{"cut off", ociArchive(t, arch, false)[:1500], nil, "unexpected EOF"},
		{"empty", nil, nil, "EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "image.tar")
			if err := os.WriteFile(path, tt.archive, 0o644); err != nil {
				t.Fatal(err)
			}
			image, err := Open(path)
			if diff := cmp.Diff(tt.want, image.Names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			switch {
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err != "" && (err == nil || !errors.Is(err, ErrNoImage) || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), path)):
				t.Errorf("error %v, want one that names the file and has %q", err, tt.err)
			}
		})
	}
}

func TestLoadNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	_, err := Load(t.Context(), Config{CoreDNS: "/bin/coredns"}, filepath.Join(t.TempDir(), "gone.tar"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), CoreDNS) {
		t.Errorf("error %v", err)
	}
	want, archive := made(t, "localhost/test/mine:1")
	got, err := Load(t.Context(), Config{}, archive)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzReadContents wants an image, or an error that says that it is none.
func FuzzReadContents(f *testing.F) {
	f.Add(archiveOf(f, map[string]string{"manifest.json": `[{"Config":"c","Layers":["l"]}]`, "c": "{}", "l": ""}))
	f.Add(archiveOf(f, map[string]string{"index.json": `{"manifests":[{"digest":"sha256:00"}]}`}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		c, err := readContents(bytes.NewReader(archive))
		if err != nil {
			if !errors.Is(err, ErrNoImage) {
				t.Errorf("error %v", err)
			}
			return
		}
		if image, err := c.image(); err == nil && image.ID == "" {
			t.Errorf("an image without an ID in %q", c)
		}
	})
}
