package simulation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tree is files below a directory. It touches only those that change, and keeps
// its errors until done.
type tree struct {
	root    string
	written map[string]string // what each file holds, or each link leads to
	errs    []error
}

func newTree(root string) *tree { return &tree{root: root, written: map[string]string{}} }

func (t *tree) path(name string) string { return filepath.Join(t.root, name) }

func (t *tree) fail(err error) {
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

// done returns the errors since it was called last.
func (t *tree) done() error {
	err := errors.Join(t.errs...)
	t.errs = nil
	return err
}

// write has a file hold a line.
func (t *tree) write(name, value string) {
	if old, ok := t.written[name]; ok && old == value {
		return
	}
	_, known := t.written[name]
	t.written[name] = value
	if !known {
		t.mkdir(filepath.Dir(name))
	}
	t.fail(overwrite(t.path(name), value+"\n"))
}

// overwrite writes a file in its place, so that who has it open reads what is
// new, and never a file that is empty.
func overwrite(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // attributes of sysfs are readable by all
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	return errors.Join(err, f.Truncate(int64(len(text))), f.Close())
}

// writeAll writes the files of one directory.
func (t *tree) writeAll(dir string, values map[string]string) {
	for name, value := range values {
		t.write(dir+"/"+name, value)
	}
}

func (t *tree) mkdir(name string) {
	t.fail(os.MkdirAll(t.path(name), 0o755)) //nolint:gosec // as in sysfs
}

// link makes a relative symbolic link between two files of the tree.
func (t *tree) link(name, target string) {
	if t.written[name] == target {
		return
	}
	t.written[name] = target
	t.mkdir(filepath.Dir(name))
	relative, err := filepath.Rel(filepath.Dir(name), target)
	t.fail(err)
	if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.fail(err)
	}
	t.fail(os.Symlink(relative, t.path(name)))
}

// hardLink makes a file another name of one outside of the tree.
func (t *tree) hardLink(name, existing string) {
	t.mkdir(filepath.Dir(name))
	t.fail(os.Link(existing, t.path(name)))
}

// remove removes a file, or a directory with all in it.
func (t *tree) remove(name string) {
	for file := range t.written {
		if file == name || strings.HasPrefix(file, name+"/") {
			delete(t.written, file)
		}
	}
	t.fail(os.RemoveAll(t.path(name)))
}
