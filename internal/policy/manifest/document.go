package manifest

import (
	"bytes"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Document is one document of a stream, or one item of a List in it.
type Document struct {
	Line int    // of its first line in the stream, comments left out, from 1
	Data []byte // YAML or JSON
	root *value
	err  error // why there is no root
}

// Documents returns the documents of a stream of YAML or JSON, without those
// that hold nothing but comments. Of a List of v1 it returns the items. A
// document that cannot be read is there, and its Decode says why.
func Documents(stream []byte) []Document {
	var docs []Document
	for _, d := range split(stream) {
		d.root, d.err = parse(d.Data, d.Line)
		if items, ok := itemsOf(d.root); ok {
			docs = append(docs, items...)
		} else {
			docs = append(docs, d)
		}
	}
	return docs
}

// itemsOf returns the items of a List of v1.
func itemsOf(v *value) ([]Document, bool) {
	if v == nil {
		return nil, false
	}
	version, kind, items := v.field("apiVersion"), v.field("kind"), v.field("items")
	if version == nil || version.text != "v1" || kind == nil || kind.text != "List" || items == nil || items.shape != list {
		return nil, false
	}
	docs := make([]Document, len(items.items))
	for i := range items.items {
		item := &items.items[i]
		docs[i] = Document{Line: item.line, Data: item.appendJSON(nil), root: item}
	}
	return docs, true
}

// LineOf returns the line in the stream of a field, given as errors have it
// ("spec.ips[0]"), or of the nearest that is there around it.
func (d Document) LineOf(path string) int {
	line := d.Line
	if d.root != nil {
		lineOf(nil, d.root, path, &line)
	}
	return line
}

// lineOf sets line to that of the value within v that path leads to.
func lineOf(at *field.Path, v *value, path string, line *int) {
	for i := range v.fields {
		f := &v.fields[i]
		for _, p := range []*field.Path{at.Child(f.name), at.Key(f.name)} {
			if leadsTo(p, path) {
				*line = f.line
				lineOf(p, &f.value, path, line)
				return
			}
		}
	}
	for i := range v.items {
		if p := at.Index(i); leadsTo(p, path) {
			*line = v.items[i].line
			lineOf(p, &v.items[i], path, line)
			return
		}
	}
}

// leadsTo says whether path is p or within it.
func leadsTo(p *field.Path, path string) bool { return isWithin(path, p.String()) }

// split cuts a stream at its document markers. YAML has none within a value: a
// line that begins with --- is one wherever it stands.
func split(stream []byte) []Document {
	stream = bytes.TrimPrefix(stream, []byte("\xef\xbb\xbf"))
	var docs []Document
	doc := Document{}
	end := func() {
		if doc.Line > 0 {
			docs = append(docs, doc)
		}
		doc = Document{}
	}
	line := 0
	for text := range bytes.Lines(stream) {
		line++
		marker, rest := cutMarker(text)
		if marker {
			end()
			text = rest
		}
		if doc.Line == 0 {
			if isNothing(text) {
				continue
			}
			doc.Line = line
		}
		doc.Data = append(doc.Data, text...)
	}
	end()
	return docs
}

// cutMarker says whether a line begins or ends a document, and returns what of
// the new document stands on it.
func cutMarker(line []byte) (bool, []byte) {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok {
		rest, ok = bytes.CutPrefix(line, []byte("..."))
	}
	if !ok || len(rest) > 0 && !strings.ContainsRune(" \t\r\n", rune(rest[0])) {
		return false, nil
	}
	return true, rest
}

// isNothing says whether a line before a document says nothing: blank, a
// comment, or a directive of YAML. To YAML a no-break space is a letter.
func isNothing(line []byte) bool {
	line = bytes.Trim(line, " \t\r\n")
	return len(line) == 0 || line[0] == '#' || line[0] == '%'
}
