// Package image makes the container images of a local cluster without a
// container engine or a registry: static binaries and Debian's tools on an
// empty base, written as archives that containerd imports. The same inputs
// give the same bytes. It never talks to a container runtime.
package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Images that pods of a local cluster name. None of them can be pulled: a pod's imagePullPolicy is Never or IfNotPresent.
const (
	Pause    = "localhost/railhead/pause:1"
	Railhead = "localhost/railhead/railhead:dev"
	Tools    = "localhost/railhead/tools:1"
	CoreDNS  = "localhost/railhead/coredns:1"
)

// all are the images that can be made.
func all() []string { return []string{Pause, Railhead, Tools, CoreDNS} }

// Image is an image in an archive that `ctr images import` takes.
type Image struct {
	Name string // as pods name it, with registry and tag
	Path string // the archive
}

// Config says where images are made and of what.
type Config struct {
	// Cache is the absolute path of the directory for finished images and what they are made of. Processes may share it.
	Cache string
	// CoreDNS is the path of the static binary for the image of that name.
	CoreDNS string
	// Progress receives a line a step; nil is silence.
	Progress io.Writer
}

// Build makes the images of these names, or all when none is given, where they are not in the cache yet, and returns
// them in this order. Programs of this module are built from the module around the working directory. It needs apt,
// dpkg-deb and go, and no root. One image that fails does not keep the others from being made.
func Build(ctx context.Context, c Config, names ...string) ([]Image, error) {
	if !filepath.IsAbs(c.Cache) {
		return nil, fmt.Errorf("cache of images %q: not an absolute path", c.Cache)
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	if len(names) == 0 {
		names = all()
	}
	if err := os.MkdirAll(c.Cache, 0o755); err != nil {
		return nil, err
	}
	w := &workshop{Config: c, start: time.Now()}
	defer w.close()
	var images []Image
	var errs []error
	for _, name := range names {
		image, err := w.image(ctx, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("image %s: %w", name, err))
			continue
		}
		images = append(images, image)
	}
	return images, errors.Join(errs...)
}

// Named finds an image of ours by what a user calls it: its name, with or without registry and tag.
func Named(word string) (name string, ok bool) {
	for _, name := range all() {
		if word == name || word == short(name) {
			return name, true
		}
	}
	return "", false
}

// short is a name without registry and tag.
func short(name string) string {
	base := name[strings.LastIndexByte(name, '/')+1:]
	before, _, _ := strings.Cut(base, ":")
	return before
}
