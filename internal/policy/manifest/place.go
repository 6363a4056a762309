package manifest

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is where in an object's type a value stands.
type place struct {
	path     *field.Path // nil: the root
	typ      reflect.Type
	tolerant bool   // unknown fields are passed over
	around   *place // nil: the root
}

// child returns the place of a field.
func (p *place) child(f known) place {
	c := place{path: p.path.Child(f.name), typ: f.typ, tolerant: p.tolerant, around: p}
	if p.path == nil && (f.name == "metadata" || f.name == "status") {
		c.tolerant = true
	}
	return c
}

// known is a field that a type has.
type known struct {
	name  string
	index []int
	typ   reflect.Type
}

// fieldsOf returns the fields of a struct by their names in JSON, those of
// embedded structs among them.
func fieldsOf(t reflect.Type) []known {
	fields := make([]known, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "":
			for _, k := range fieldsOf(f.Type) {
				k.index = append([]int{i}, k.index...)
				fields = append(fields, k)
			}
		default:
			fields = append(fields, known{name, f.Index, f.Type})
		}
	}
	return fields
}

// fieldOf returns the field of a name.
func fieldOf(fields []known, name string) (known, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return known{}, false
}

// pointee returns the type that a pointer points to, and any other type as it is.
func pointee(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
