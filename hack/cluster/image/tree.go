package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// tree is what a container finds as its root: files by their paths, without a leading slash. Directories above a file
// need no entry of their own.
type tree map[string]file

// file is a regular file, a directory (by its mode) or a link (by its target).
type file struct {
	mode    fs.FileMode
	content []byte
	target  string // of a symbolic link
}

// symlink is a link to a target.
func symlink(target string) file { return file{mode: fs.ModeSymlink | 0o777, target: target} }

// directory is an empty directory.
func directory(mode fs.FileMode) file { return file{mode: fs.ModeDir | mode} }

// add reads a file of this machine into the tree, following links.
func (t tree) add(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	t[name] = file{mode: info.Mode().Perm(), content: content}
	return nil
}

// layer is the tree as an uncompressed archive. It depends on nothing but names, modes and contents: entries are
// sorted, everything belongs to root and was made at the epoch.
func (t tree) layer() ([]byte, error) {
	all := maps.Clone(t)
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = directory(0o755)
			}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		header, err := tar.FileInfoHeader(entry{path.Base(name), f}, f.target)
		if err != nil {
			return nil, err
		}
		header.Name = name
		if f.mode.IsDir() {
			header.Name += "/"
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// entry is a file as archive/tar takes it.
type entry struct {
	name string
	file
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return int64(len(e.content)) }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Unix(0, 0) }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }
