package archive

import (
	"errors"
	"strings"
)

// kind is what the name of an entry makes it.
type kind int

const (
	fileEntry kind = iota
	linkEntry
	directoryEntry
	tableEntry
)

// entryName is the name of an entry, taken apart.
type entryName struct {
	kind   kind
	name   string
	target string // of a link
}

func parseEntry(s string) entryName {
	if dir, ok := strings.CutSuffix(s, "/{}"); ok {
		return entryName{kind: tableEntry, name: dir}
	}
	if name, target, ok := strings.Cut(s, " -> "); ok {
		return entryName{kind: linkEntry, name: name, target: target}
	}
	if dir, ok := strings.CutSuffix(s, "/"); ok {
		return entryName{kind: directoryEntry, name: dir}
	}
	return entryName{kind: fileEntry, name: s}
}

func (e entryName) String() string {
	switch e.kind {
	case tableEntry:
		return e.name + "/{}"
	case linkEntry:
		return e.name + " -> " + e.target
	case directoryEntry:
		return e.name + "/"
	default:
		return e.name
	}
}

// row is a line of a table.
type row struct {
	name   string
	text   string // contents of a file without its newline, target of a link
	isLink bool
}

func parseRow(line string) (row, error) {
	name, value, isFile := strings.Cut(line+" ", ": ") // the space is for "NAME:"
	if link, target, ok := strings.Cut(line, " -> "); ok && (!isFile || len(link) < len(name)) {
		return row{name: link, text: target, isLink: true}, nil
	}
	if !isFile {
		return row{}, errors.New(`want "NAME: VALUE" or "NAME -> TARGET"`)
	}
	return row{name: name, text: strings.TrimSuffix(value, " ")}, nil
}

func (r row) String() string {
	switch {
	case r.isLink:
		return r.name + " -> " + r.text
	case r.text == "":
		return r.name + ":"
	default:
		return r.name + ": " + r.text
	}
}
