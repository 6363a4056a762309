package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxListed is how many names an error lists where none is near.
const maxListed = 8

// unknown notes a field that the struct at a place lacks, and what was probably
// meant.
func (r *reader) unknown(at *place, fields []known, v *value, name string) {
	if at.tolerant {
		return
	}
	hint, paths := r.guess(at, fields, v, name)
	err := field.Forbidden(at.path.Child(name), "unknown field: "+hint)
	err.BadValue = paths
	r.errs = append(r.errs, err)
}

// guess returns what was probably meant by an unknown field, in words and as
// paths: another name, another place, or one of the fields there are.
func (r *reader) guess(at *place, fields []known, v *value, name string) (string, meant) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	sibling := renamed[at.typ][name]
	if sibling == "" {
		if blocks := below(at, fields, v, name); len(blocks) > 0 {
			return "it belongs under " + strings.Join(blocks, " or "), childrenOf(blocks, name)
		}
		sibling = nearest(name, names)
	}
	if sibling != "" {
		return fmt.Sprintf("did you mean %q?", sibling), meant{at.path.Child(sibling).String()}
	}
	if where, path := above(at, name); where != "" {
		return "it belongs " + where, meant{path}
	}
	if len(names) <= maxListed {
		return "there are " + strings.Join(names, ", "), nil
	}
	if part := containing(name, names); part != "" {
		return fmt.Sprintf("did you mean %q?", part), meant{at.path.Child(part).String()}
	}
	return "see kubectl explain " + r.explained(at), nil
}

// explained returns what "kubectl explain" calls a place: the kind, and the path
// without indexes and keys.
func (r *reader) explained(at *place) string {
	names := []string{}
	for p := at; p.around != nil; p = p.around {
		if p.around.typ.Kind() == reflect.Struct {
			path := p.path.String()
			names = append(names, path[strings.LastIndexByte(path, '.')+1:])
		}
	}
	names = append(names, strings.ToLower(r.kind))
	slices.Reverse(names)
	return strings.Join(names, ".")
}

// below returns the paths of the fields of v, an object, that have a field of the
// name: of those that are written, or that the type of a network says, and of all
// where a network leaves that open. Spec need not be written.
func below(at *place, fields []known, v *value, name string) []string {
	var all, written []string
	for _, f := range fields {
		t := pointee(f.typ)
		if t.Kind() != reflect.Struct || at.path == nil && f.name != "spec" {
			continue
		}
		if _, ok := fieldOf(fieldsOf(t), name); !ok {
			continue
		}
		path := at.path.Child(f.name).String()
		all = append(all, path)
		if v.field(f.name) != nil || isBlockOf(v, f.name) {
			written = append(written, path)
		}
	}
	_, typed := fieldOf(fields, "cniType")
	if len(written) == 0 && (at.path == nil || typed && v.field("cniType") == nil) {
		return all
	}
	return written
}

// childrenOf returns the paths of a field in each of some objects.
func childrenOf(paths []string, name string) meant {
	fields := make(meant, len(paths))
	for i, p := range paths {
		fields[i] = p + "." + name
	}
	return fields
}

// isBlockOf says whether a field is the block of a network's type.
func isBlockOf(v *value, name string) bool {
	t := v.field("cniType")
	return t != nil && strings.ReplaceAll(t.text, "-", "") == name
}

// above returns where around a place a field of the name belongs, in words and as
// its path: in the nearest object that has one, or in metadata.
func above(at *place, name string) (where, path string) {
	outermost := at
	for p := at.around; p != nil; p = p.around {
		outermost = p
		if p.typ.Kind() != reflect.Struct {
			continue
		}
		if _, ok := fieldOf(fieldsOf(p.typ), name); ok {
			if p.path == nil {
				return "beside spec", name
			}
			return "under " + p.path.String(), p.path.Child(name).String()
		}
	}
	meta, _ := fieldOf(fieldsOf(outermost.typ), "metadata")
	if _, ok := fieldOf(fieldsOf(meta.typ), name); ok {
		return "under metadata", "metadata." + name
	}
	return "", ""
}

// nearest returns the name that a misspelt one was probably meant to be, and ""
// if none is near: a third of the letters may be wrong, upper and lower case count
// as the same.
func nearest(name string, names []string) string {
	best, distance := "", 0
	if len(name) > maxShown {
		return ""
	}
	for _, n := range names {
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n))
		if d <= max(1, len(n)/3) && (best == "" || d < distance) {
			best, distance = n, d
		}
	}
	return best
}

// containing returns the longest of the names that a longer one has in it, such
// as gateway in gatewayAddress, and "" if it has none.
func containing(name string, names []string) string {
	const least = 3 // letters: shorter ones are in anything
	best := ""
	for _, n := range names {
		if len(n) >= max(least, len(best)+1) && strings.Contains(strings.ToLower(name), strings.ToLower(n)) {
			best = n
		}
	}
	return best
}
