package binaries

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// set puts the programs of products together, and removes from the cache what
// is old.
func (m *maker) set(products []product) (*Set, error) {
	var dirs []string
	for _, p := range products {
		dirs = append(dirs, p.dir)
	}
	s := &Set{dir: filepath.Join(m.setsDir(), key(dirs)), paths: map[string]string{}}
	if err := assemble(s.dir, products); err != nil {
		return nil, fmt.Errorf("put programs together: %w", err)
	}
	for _, p := range products {
		for name := range p.versions {
			s.paths[name] = filepath.Join(s.dir, p.target(), name)
		}
	}
	return s, m.prune()
}

// target is the directory of a set that the product's programs are in.
func (p product) target() string {
	if p.family == CNI {
		return cniDir
	}
	return programsDir
}

// assemble makes dir of links to the products' files. It is there as a whole
// or not at all, also when another process does the same now.
func assemble(dir string, products []product) (err error) {
	if touch(dir) == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	for _, sub := range []string{programsDir, cniDir} {
		if err := os.Mkdir(filepath.Join(work, sub), 0o755); err != nil {
			return err
		}
	}
	for _, p := range products {
		if err := linkAll(filepath.Join(p.dir, programsDir), filepath.Join(work, p.target())); err != nil {
			return err
		}
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	err = os.Rename(work, dir)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// linkAll makes hard links to all files below from, in the same directories
// below to.
func linkAll(from, to string) error {
	return filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		return os.Link(file, filepath.Join(to, name))
	})
}
