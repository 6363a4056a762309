package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"railhead/hack/debian"
)

// debianSuite is where the tools come from.
const debianSuite = "trixie"

// unusedFor is how long an archive stays in the cache after its last use: every change to a program makes a new one.
const unusedFor = 24 * time.Hour

// workshop is one run of Build.
//
//	<cache>/apt/<suite>       package lists
//	<cache>/bin               programs of this module
//	<cache>/<image>-<key>.tar archives
type workshop struct {
	Config
	start  time.Time
	debian *debian.Suite // opened when first needed
}

// recipe is how an image is made.
type recipe struct {
	inputs []string // all that decides what is in it, beside version
	run    command
	fill   func(context.Context, tree) error
}

// version is part of every archive's key: another one makes all images anew. It changes with the code of this package
// where that changes what is in an image.
const version = "1"

func (w *workshop) close() {
	if w.debian != nil {
		w.debian.Close()
	}
}

// progress prints a line with the time since the start.
func (w *workshop) progress(format string, args ...any) {
	fmt.Fprintf(w.Progress, "%5.1fs  images: %s\n", time.Since(w.start).Seconds(), fmt.Sprintf(format, args...))
}

// recipe finds how an image is made.
func (w *workshop) recipe(ctx context.Context, name string) (recipe, error) {
	switch name {
	case Pause:
		return w.pause(ctx)
	case Railhead:
		return w.railhead(ctx)
	case Tools:
		return w.tools(ctx)
	case CoreDNS:
		return w.coredns()
	}
	return recipe{}, fmt.Errorf("not one of %s", strings.Join(all(), ", "))
}

// image returns an image from the cache, where it is made first if it is not there.
func (w *workshop) image(ctx context.Context, name string) (Image, error) {
	r, err := w.recipe(ctx, name)
	if err != nil {
		return Image{}, err
	}
	archive := filepath.Join(w.Cache, fmt.Sprintf("%s-%s.tar", short(name), key(append(r.inputs, version, name, fmt.Sprint(r.run)))))
	now := time.Now()
	image := Image{Name: name, Path: archive}
	if os.Chtimes(archive, now, now) == nil {
		return image, nil
	}
	w.progress("making %s", name)
	t := tree{}
	if err := r.fill(ctx, t); err != nil {
		return Image{}, err
	}
	if err := write(archive, name, t, r.run); err != nil {
		return Image{}, err
	}
	return image, w.prune(short(name))
}

// prune removes archives of an image that nobody has asked for in a while.
func (w *workshop) prune(name string) error {
	archives, err := filepath.Glob(filepath.Join(w.Cache, name+"-*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		info, err := os.Stat(archive)
		if err == nil && time.Since(info.ModTime()) > unusedFor {
			err = os.Remove(archive)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prune cache: %w", err)
		}
	}
	return nil
}

// key is a short name for a list of inputs.
func key(inputs []string) string {
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\x00")))
	return fmt.Sprintf("%x", sum[:6])
}

// suite is the Debian suite, opened once.
func (w *workshop) suite(ctx context.Context) (*debian.Suite, error) {
	if w.debian != nil {
		return w.debian, nil
	}
	var err error
	w.debian, err = debian.Open(ctx, debian.Config{
		Dir:          filepath.Join(w.Cache, "apt", debianSuite),
		Suite:        debianSuite,
		Architecture: runtime.GOARCH,
		Logf:         w.progress,
	})
	return w.debian, err
}

// packages are the named packages and all they depend on.
func (w *workshop) packages(ctx context.Context, names ...string) ([]debian.Package, error) {
	s, err := w.suite(ctx)
	if err != nil {
		return nil, err
	}
	return s.Closure(ctx, names...)
}

// unpacked calls use with a directory where the packages are unpacked, as long as it lasts.
func (w *workshop) unpacked(ctx context.Context, packages []debian.Package, use func(root string) error) (err error) {
	w.progress("fetching %d Debian packages", len(packages))
	work, err := os.MkdirTemp(w.Cache, "unpacked-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	root, scratch := filepath.Join(work, "root"), filepath.Join(work, "debs")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Mkdir(scratch, 0o755)); err != nil {
		return err
	}
	if err := w.debian.Unpack(ctx, root, scratch, packages); err != nil {
		return err
	}
	return use(root)
}
