// Package archive keeps a copy of a node as text: the files of sysfs, proc, etc
// and dev that the inventory and the check read. It is how a node is looked at
// from elsewhere, and how a bug report becomes a test. The package knows files,
// not what they mean.
//
// [Unpack] makes a tree of an archive, a [Writer] makes an archive of a tree.
//
// # Format
//
// An archive is a txtar file: a comment, then files, each after a line
// "-- NAME --". It is kept in testdata, because the names of PCI functions
// hold colons, which Go modules forbid in file names. The comment says which
// machine and which kernel it is from. The form of a name says what it makes:
//
//	-- sys/class/infiniband/mlx5_0/fw_ver --
//	28.39.1002
//
// is a file with those contents.
//
//	-- sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:16/infiniband/mlx5_0 --
//
// is a symbolic link.
//
//	-- sys/class/infiniband_mad/ --
//
// is an empty directory.
//
//	-- sys/devices/pci0000:16/infiniband/mlx5_0/{} --
//	fw_ver: 28.39.1002
//	ports/1/link_layer: Ethernet
//	device -> ../../../0000:17:00.0
//
// is a table of small files and links in one directory. A file is given by its
// name, a colon, a space and its contents up to the end of the line, to which
// a newline is added as the kernel does; after "NAME:" the file holds just the
// newline. Empty lines are skipped.
//
// Names are relative, clean paths with slashes. Missing directories are made.
// An archive can make nothing outside its directory: names and links that
// lead out of it are refused, and so is an entry below a link (give the
// link's target instead) and one that is there already.
package archive

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// Unpack makes what an archive holds in a directory, which must exist. It
// stops at the first entry that it refuses or cannot make; those before it
// stay.
func Unpack(archive []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	t := &tree{root: root, links: make(map[string]bool)}
	defer t.close()
	for _, f := range txtar.Parse(archive).Files {
		if err := t.entry(f.Name, f.Data); err != nil {
			return fmt.Errorf("archive entry %q: %w", f.Name, err)
		}
	}
	return nil
}

// tree is a directory that is being filled. It makes files by way of os.Root,
// which holds against links that were in the directory before.
type tree struct {
	root  *os.Root
	links map[string]bool // those made so far

	// The directory of the last file: most files have it in common with the
	// one before, and looking it up again is most of the work.
	dir     *os.Root
	dirName string
}

func (t *tree) close() {
	t.leave()
	_ = t.root.Close()
}

// entry makes what an entry of the archive stands for.
func (t *tree) entry(name string, data []byte) error {
	switch e := parseEntry(name); e.kind {
	case tableEntry:
		return t.table(e.name, string(data))
	case linkEntry:
		return t.link(e.name, e.target)
	case directoryEntry:
		_, err := t.enter(e.name)
		return err
	default:
		return t.file(e.name, data)
	}
}

// table makes the files and links that the lines of a table stand for.
func (t *tree) table(dir, lines string) error {
	if _, err := t.enter(dir); err != nil {
		return err
	}
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		if err := t.line(dir, line); err != nil {
			return fmt.Errorf("line %.64q: %w", line, err)
		}
	}
	return nil
}

func (t *tree) line(dir, line string) error {
	r, err := parseRow(line)
	switch {
	case err != nil:
		return err
	case r.isLink:
		return t.link(dir+"/"+r.name, r.text)
	default:
		return t.file(dir+"/"+r.name, []byte(r.text+"\n"))
	}
}

func (t *tree) file(name string, data []byte) error {
	if err := checkPath(name); err != nil {
		return err
	}
	dir, err := t.enter(path.Dir(name))
	if err != nil {
		return err
	}
	f, err := dir.OpenFile(path.Base(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (t *tree) link(name, target string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if err := checkTarget(name, target); err != nil {
		return err
	}
	dir, err := t.enter(path.Dir(name))
	if err != nil {
		return err
	}
	t.links[name] = true
	return dir.Symlink(target, path.Base(name))
}

// enter returns a directory, which it makes if need be.
func (t *tree) enter(name string) (*os.Root, error) {
	if t.dir != nil && t.dirName == name {
		return t.dir, nil
	}
	if err := checkPath(name); err != nil {
		return nil, err
	}
	for p := name; p != "."; p = path.Dir(p) {
		if t.links[p] {
			return nil, fmt.Errorf("%s is a link, want a path without links", p)
		}
	}
	if err := t.root.MkdirAll(name, 0o755); err != nil {
		return nil, err
	}
	dir, err := t.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	t.leave()
	t.dir, t.dirName = dir, name
	return dir, nil
}

// leave forgets the directory of the last file.
func (t *tree) leave() {
	if t.dir != nil {
		_ = t.dir.Close()
	}
}

func checkPath(name string) error {
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return fmt.Errorf("path %.64q, want a clean one inside the tree", name)
	}
	return nil
}

func checkTarget(name, target string) error {
	// A clean target goes up first and only then down, where no link can turn
	// a further step up into another one.
	if path.IsAbs(target) || path.Clean(target) != target || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
		return fmt.Errorf("link to %.64q, want a relative, clean target inside the tree", target)
	}
	return nil
}
