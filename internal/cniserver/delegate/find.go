package delegate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotThere is the error of a plugin that is in none of its directories.
var ErrNotThere = errors.New("no such plugin")

// find is the path of a call's plugin in the node's root.
func (d *Delegate) find(c Call) (string, error) {
	if c.Type == "" || c.Type == "." || c.Type == ".." || strings.ContainsRune(c.Type, '/') {
		return "", fmt.Errorf("type: %q is no name of a CNI plugin: want the file's name alone", c.Type)
	}
	dirs := d.path(c)
	var errs []error
	for _, dir := range dirs {
		path := filepath.Join(dir, c.Type)
		switch err := d.runs(path); {
		case err == nil:
			return path, nil
		case !errors.Is(err, os.ErrNotExist):
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return "", errors.Join(errs...)
	}
	return "", fmt.Errorf("%w in %s on the node", ErrNotThere, strings.Join(dirs, ", "))
}

// path is where a call's plugins are. Directories that are not absolute would be
// found from who knows where.
func (d *Delegate) path(c Call) []string {
	dirs := slices.DeleteFunc(filepath.SplitList(c.Path), func(dir string) bool { return !filepath.IsAbs(dir) })
	if len(dirs) == 0 {
		return d.binDirs
	}
	return dirs
}

// runs tells whether a path of the node is a program.
func (d *Delegate) runs(path string) error {
	f, err := d.open(path, unix.O_PATH)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is %s: want a file that can be run", path, info.Mode())
	}
	return nil
}

// open opens a path of the node. Symbolic links lead where they lead on the
// node, also absolute ones.
func (d *Delegate) open(path string, flags uint64) (*os.File, error) {
	root, err := unix.Open(cmp.Or(d.root, "/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: d.root, Err: err}
	}
	defer func() { _ = unix.Close(root) }()
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	for {
		fd, err := unix.Openat2(root, path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN): // EAGAIN: a rename raced with it
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// File is a CNI configuration on the node's disk.
type File struct {
	Path    string // on the node
	Content []byte
}

// maxFile is how long a configuration may be, in bytes.
const maxFile = 1 << 20

// Files are the node's CNI configurations: .conflist, .conf and .json in ConfDir,
// by name. Those that cannot be read are in the error and do not hide others. It
// is no error that there is no directory yet.
func (d *Delegate) Files() ([]File, error) {
	dir, err := d.open(d.confDir, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	slices.Sort(names)
	var files []File
	var errs []error
	for _, name := range names {
		if !slices.Contains([]string{".conflist", ".conf", ".json"}, filepath.Ext(name)) {
			continue
		}
		file, err := d.read(filepath.Join(d.confDir, name))
		if err != nil {
			errs = append(errs, fmt.Errorf("CNI configuration: %w", err))
			continue
		}
		files = append(files, file)
	}
	return files, errors.Join(errs...)
}

func (d *Delegate) read(path string) (File, error) {
	f, err := d.open(path, unix.O_RDONLY|unix.O_NONBLOCK) // a pipe would be waited for
	if err != nil {
		return File{}, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return File{}, errors.Join(err, f.Close(), fmt.Errorf("%s: want a file", path))
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return File{}, err
	}
	if len(content) > maxFile {
		return File{}, fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return File{Path: path, Content: content}, nil
}
