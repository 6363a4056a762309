package sysfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ConfigFile returns the contents of a regular file given by its place on a
// running system, such as /etc/containerd/config.toml. Links are followed as
// the system itself would, so that an absolute one stays below the root of
// the FS. A file of more than limit bytes is an error, and so is a file that
// is not regular. Root may be needed: it depends on the file.
func (fs FS) ConfigFile(name string, limit int64) ([]byte, error) {
	real, err := fs.resolve(name)
	if err != nil {
		return nil, err
	}
	return readRegular(real, limit)
}

// configNames lists a directory of configuration files; one that is not there
// holds nothing.
func (fs FS) configNames(dir string) ([]string, error) {
	real, err := fs.resolve(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(real)
	var found []string
	for _, e := range entries {
		if !e.IsDir() {
			found = append(found, e.Name())
		}
	}
	return found, err
}

// resolve returns the path, on this side, of a file given by its place on the
// system, with all links followed as if the FS were the root directory. (This
// is no protection from a system that changes meanwhile, but from reading our
// own files where the system's were meant.)
func (fs FS) resolve(name string) (string, error) {
	done := "/"
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		rest = rest[1:]
		if next == "/" { // the root itself is wherever the FS says
			done = next
			continue
		}
		target, err := os.Readlink(fs.Path(next))
		if errors.Is(err, unix.EINVAL) {
			done = next
			continue
		}
		if err != nil {
			return "", err
		}
		if links++; links > 40 {
			return "", &os.PathError{Op: "open", Path: fs.Path(name), Err: unix.ELOOP}
		}
		if path.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return fs.Path(done), nil
}

// readRegular reads a regular file of at most limit bytes. It may claim to be
// empty, as the files of proc do.
func readRegular(name string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(filepath.Clean(name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: %s, want a regular file", name, os.ErrInvalid, info.Mode())
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", name, limit)
	}
	return b, nil
}
