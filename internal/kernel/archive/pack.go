package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// Writer gathers the files of a tree and writes them as an archive, from which
// [Unpack] makes the same tree. The zero value is an empty archive. A Writer
// is not safe for concurrent use.
//
// Files, links and directories appear in the order in which they were added;
// files of one line and links are gathered in tables, which are laid out to
// make the archive short. So the same additions always give the same archive,
// and it reads in the order that the caller thought of.
//
// The format quotes nothing. What it cannot hold is refused by an error that
// names it, and leaves the archive as it was: names and contents that are not
// UTF-8 or have control characters (contents may have tabs), contents that do
// not end in a newline, lines that look like the start of an entry, names that
// look like another form of entry, and what Unpack would refuse: paths and
// links that lead out of the tree, whatever is there already, and whatever is
// below a file or a link.
type Writer struct {
	comment string
	dirs    map[string]*dirNode
	taken   map[string]bool // files and links
	added   int
}

// dirNode is a directory of the tree.
type dirNode struct {
	path  string
	order int
	dirs  []*dirNode
	items []*item
}

// item is a file or a link.
type item struct {
	path   string
	text   string // contents of a file, target of a link
	isLink bool
	order  int
}

// Comment sets what stands before the first entry.
func (w *Writer) Comment(text string) error {
	if err := checkText(text); err != nil {
		return fmt.Errorf("comment: %w", err)
	}
	if len(txtar.Parse([]byte(text)).Files) > 0 {
		return fmt.Errorf("comment: %w", errMarker)
	}
	w.comment = text
	return nil
}

// File adds a file. A file without contents is not one that holds a newline.
func (w *Writer) File(name string, data []byte) error {
	if err := checkText(string(data)); err != nil {
		return fmt.Errorf("file %q: %w", name, err)
	}
	if err := w.add(&item{path: name, text: string(data)}); err != nil {
		return fmt.Errorf("file %q: %w", name, err)
	}
	return nil
}

// Link adds a symbolic link. Its target is relative to its directory and need
// not be there.
func (w *Writer) Link(name, target string) error {
	err := checkTarget(name, target)
	if err == nil {
		err = w.add(&item{path: name, text: target, isLink: true})
	}
	if err != nil {
		return fmt.Errorf("link %q: %w", name, err)
	}
	return nil
}

// Dir adds a directory, which may be there already. Only a directory that
// stays empty has to be added: what is in others makes them.
func (w *Writer) Dir(name string) error {
	err := checkEntry(entryName{kind: directoryEntry, name: name}, "")
	if err == nil {
		_, err = w.dir(name)
	}
	if err != nil {
		return fmt.Errorf("directory %q: %w", name, err)
	}
	return nil
}

func (w *Writer) add(i *item) error {
	if err := checkEntry(i.entry()); err != nil {
		return err
	}
	if w.taken[i.path] || w.dirs[i.path] != nil {
		return fs.ErrExist
	}
	d, err := w.dir(path.Dir(i.path))
	if err != nil {
		return err
	}
	w.taken[i.path] = true
	i.order = w.next()
	d.items = append(d.items, i)
	return nil
}

// dir returns a directory, which it makes if need be, unless it is or lies
// below a file or a link.
func (w *Writer) dir(name string) (*dirNode, error) {
	if w.dirs == nil {
		w.dirs = map[string]*dirNode{".": {path: "."}}
		w.taken = map[string]bool{}
	}
	for p := name; p != "."; p = path.Dir(p) {
		if w.taken[p] {
			return nil, fmt.Errorf("%q is a file or a link: %w", p, fs.ErrExist)
		}
	}
	return w.makeDir(name), nil
}

func (w *Writer) makeDir(name string) *dirNode {
	if d := w.dirs[name]; d != nil {
		return d
	}
	parent := w.makeDir(path.Dir(name))
	d := &dirNode{path: name, order: w.next()}
	parent.dirs = append(parent.dirs, d)
	w.dirs[name] = d
	return d
}

func (w *Writer) next() int {
	w.added++
	return w.added
}

// entry is an item as an entry of its own.
func (i *item) entry() (entryName, string) {
	if i.isLink {
		return entryName{kind: linkEntry, name: i.path, target: i.text}, ""
	}
	return entryName{kind: fileEntry, name: i.path}, i.text
}

var (
	errText    = errors.New("not UTF-8 text, or with control characters, want text and tabs")
	errNewline = errors.New("no newline at its end, want lines")
	errMarker  = errors.New(`a line that is "-- NAME --", which would begin an entry`)
)

// checkText refuses text that an archive cannot hold wherever it stands.
func checkText(s string) error {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, control) {
		return errText
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		return errNewline
	}
	return nil
}

// The longest name and path that Linux has.
const (
	maxName = 255
	maxPath = 4095
)

// checkEntry refuses an entry that would not read back as it was written.
func checkEntry(e entryName, data string) error {
	if err := checkPath(e.name); err != nil {
		return err
	}
	control := strings.ContainsFunc(e.String(), unicode.IsControl)
	if control || !utf8.ValidString(e.String()) || e.name == "." || len(e.name) > maxPath || len(e.target) > maxPath {
		return errors.New("a name that an archive cannot hold, want short, printable UTF-8")
	}
	for element := range strings.SplitSeq(e.name, "/") {
		if len(element) > maxName {
			return fmt.Errorf("a name of %d bytes, want %d at most", len(element), maxName)
		}
	}
	if len(txtar.Parse([]byte(data)).Files) > 0 {
		return errMarker
	}
	written := txtar.Parse(txtar.Format(&txtar.Archive{Files: []txtar.File{{Name: e.String()}}})).Files
	if len(written) != 1 || parseEntry(written[0].Name) != e {
		return errors.New(`a name that reads as another form of entry, want none with " -> ", "{}" or spaces around it`)
	}
	return nil
}

// Bytes returns the archive.
func (w *Writer) Bytes() []byte {
	a := &txtar.Archive{Comment: []byte(w.comment)}
	if root := w.dirs["."]; root != nil {
		a.Files = layOut(root)
	}
	return txtar.Format(a)
}
