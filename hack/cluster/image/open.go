package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// ErrNoImage is the error of Open for a file that is not an archive of an image for nodes of this machine.
var ErrNoImage = errors.New("not an archive of an image")

// smallFile bounds what can be a manifest or a configuration in an archive; anything larger is a layer.
const smallFile = 4 << 20

// Open looks into an archive of the form that `docker save` writes, or of an OCI layout, and finds out whether it is
// whole: whether the configuration and the layers that it lists are there, and made for this machine's architecture.
// Layers are not read.
func Open(archive string) (Image, error) {
	f, err := os.Open(archive)
	if err != nil {
		return Image{}, err
	}
	defer f.Close()
	c, err := readContents(f)
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w", archive, err)
	}
	image, err := c.image()
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w: %w", archive, ErrNoImage, err)
	}
	image.Path = archive
	return image, nil
}

// contents is an archive: its files by name, with the content of small ones.
type contents map[string][]byte

// readContents reads an archive. Links in it are taken for empty files.
func readContents(r io.ReadSeeker) (contents, error) {
	if err := refuseCompressed(r); err != nil {
		return nil, err
	}
	c := contents{}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: after %d files: %w", ErrNoImage, len(c), err)
		}
		var content []byte
		if header.Size <= smallFile {
			if content, err = io.ReadAll(archive); err != nil {
				return nil, fmt.Errorf("%w: file %s: %w", ErrNoImage, header.Name, err)
			}
		}
		c[path.Clean(header.Name)] = content
	}
}

// refuseCompressed names the two compressions that people use for archives.
func refuseCompressed(r io.ReadSeeker) error {
	start := make([]byte, 4)
	if _, err := io.ReadFull(r, start); err != nil {
		return fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	for program, magic := range map[string]string{"gunzip": "\x1f\x8b", "unzstd": "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(start, []byte(magic)) {
			return fmt.Errorf("%w: compressed as a whole: use %s first", ErrNoImage, program)
		}
	}
	_, err := r.Seek(0, io.SeekStart)
	return err
}

// image finds the archive's image: there must be one, perhaps with several names, for this architecture.
func (c contents) image() (Image, error) {
	_, saved := c["manifest.json"]
	_, layout := c["index.json"]
	switch {
	case layout: // docker writes both, and this one says more
		return c.layoutImage()
	case saved:
		return c.savedImage()
	}
	names := slices.Sorted(maps.Keys(c))
	return Image{}, fmt.Errorf("neither manifest.json nor index.json in it, but %q", names[:min(len(names), 5)])
}

// savedImage reads the form of docker save.
func (c contents) savedImage() (Image, error) {
	var list tarball.Manifest
	if err := c.decode("manifest.json", &list); err != nil {
		return Image{}, err
	}
	if len(list) != 1 {
		return Image{}, fmt.Errorf("manifest.json lists %d images, and one is expected", len(list))
	}
	return c.described(list[0].RepoTags, path.Clean(list[0].Config), list[0].Layers)
}

// layoutImage reads an OCI layout, whose index may lead to an index of one manifest an architecture.
func (c contents) layoutImage() (Image, error) {
	var index v1.IndexManifest
	if err := c.decode("index.json", &index); err != nil {
		return Image{}, err
	}
	if len(index.Manifests) != 1 {
		return Image{}, fmt.Errorf("index.json lists %d images, and one is expected", len(index.Manifests))
	}
	top := index.Manifests[0]
	var names []string
	for _, annotation := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if imageName := top.Annotations[annotation]; imageName != "" {
			names = append(names, imageName)
			break
		}
	}
	manifest, err := c.manifest(top)
	if err != nil {
		return Image{}, err
	}
	var layers []string
	for _, l := range manifest.Layers {
		layers = append(layers, blob(l.Digest))
	}
	return c.described(names, blob(manifest.Config.Digest), layers)
}

// manifest is the one that a descriptor leads to for this architecture.
func (c contents) manifest(d v1.Descriptor) (*v1.Manifest, error) {
	if d.MediaType.IsIndex() {
		var index v1.IndexManifest
		if err := c.decode(blob(d.Digest), &index); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(index.Manifests, func(m v1.Descriptor) bool {
			return m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH
		})
		if i < 0 {
			return nil, fmt.Errorf("no image for linux on %s among its %d", runtime.GOARCH, len(index.Manifests))
		}
		d = index.Manifests[i]
	}
	var manifest v1.Manifest
	return &manifest, c.decode(blob(d.Digest), &manifest)
}

// blob is where an OCI layout has a content.
func blob(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// described checks what a manifest says.
func (c contents) described(names []string, config string, layers []string) (Image, error) {
	var cf v1.ConfigFile
	if err := c.decode(config, &cf); err != nil {
		return Image{}, err
	}
	if cf.OS != "linux" || cf.Architecture != runtime.GOARCH {
		return Image{}, fmt.Errorf("it is for %s on %s, and nodes are linux on %s", cf.OS, cf.Architecture, runtime.GOARCH)
	}
	if len(layers) != len(cf.RootFS.DiffIDs) {
		return Image{}, fmt.Errorf("%d layers, but its configuration lists %d", len(layers), len(cf.RootFS.DiffIDs))
	}
	for _, layer := range layers {
		if _, ok := c[path.Clean(layer)]; !ok {
			return Image{}, fmt.Errorf("layer %s is missing", layer)
		}
	}
	return Image{Names: names, ID: fmt.Sprintf("sha256:%x", sha256.Sum256(c[config]))}, nil
}

// decode reads a small file that must be there.
func (c contents) decode(name string, into any) error {
	content, ok := c[name]
	if !ok {
		return fmt.Errorf("file %s is missing", name)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("file %s: %w", name, err)
	}
	return nil
}
