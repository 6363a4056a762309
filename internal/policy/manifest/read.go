package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reader fills objects of Go from values, and gathers what is wrong with those.
type reader struct {
	kind string // of the object
	errs field.ErrorList
}

// read fills to with v. What is null in a list or map has no meaning there, what
// is null in a struct is absent and does not come here.
func (r *reader) read(at place, v *value, to reflect.Value) {
	if to.Kind() == reflect.Pointer {
		p := reflect.New(to.Type().Elem())
		before := len(r.errs)
		at.typ = to.Type().Elem()
		if r.read(at, v, p.Elem()); len(r.errs) == before || v.shape == object {
			to.Set(p)
		}
		return
	}
	if u, ok := to.Addr().Interface().(json.Unmarshaler); ok {
		r.unmarshal(at, v, u)
		return
	}
	switch to.Kind() {
	case reflect.Struct:
		r.object(at, v, to)
	case reflect.Map:
		r.entries(at, v, to)
	case reflect.Slice:
		r.list(at, v, to)
	default:
		if want, why := setScalar(v, to); want != "" {
			r.wrong(at, v, want, why)
		}
	}
}

// wrong notes that a value is not what is wanted.
func (r *reader) wrong(at place, v *value, want, why string) {
	r.errs = append(r.errs, field.TypeInvalid(at.path, v.shown(), "want "+want+why))
}

// object fills a struct.
func (r *reader) object(at place, v *value, to reflect.Value) {
	if v.shape != object {
		r.wrong(at, v, wanted(to.Type()), ", not "+v.shape.String())
		return
	}
	fields := fieldsOf(to.Type())
	first := map[string]int{}
	for i := range v.fields {
		f := &v.fields[i]
		if line, twice := first[f.name]; twice {
			r.twice(at.path.Child(f.name), line, f.line)
			continue
		}
		first[f.name] = f.line
		k, ok := fieldOf(fields, f.name)
		if !ok {
			r.unknown(&at, fields, v, f.name)
			continue
		}
		if f.value.shape != null {
			r.read(at.child(k), &f.value, to.FieldByIndex(k.index))
		}
	}
}

// twice notes that a name is there again.
func (r *reader) twice(path *field.Path, first, again int) {
	lines := fmt.Sprintf("lines %d and %d", first, again)
	if first == again {
		lines = fmt.Sprintf("line %d", first)
	}
	r.errs = append(r.errs, field.Forbidden(path, "is given twice, in "+lines+": keep one"))
}

// entries fills a map with names as keys.
func (r *reader) entries(at place, v *value, to reflect.Value) {
	if v.shape != object {
		r.wrong(at, v, wanted(to.Type()), ", not "+v.shape.String())
		return
	}
	elem := to.Type().Elem()
	m := reflect.MakeMapWithSize(to.Type(), len(v.fields))
	first := map[string]int{}
	for i := range v.fields {
		f := &v.fields[i]
		path := at.path.Key(f.name)
		if line, twice := first[f.name]; twice {
			r.twice(path, line, f.line)
			continue
		}
		first[f.name] = f.line
		x := reflect.New(elem).Elem()
		r.read(place{path: path, typ: elem, tolerant: at.tolerant, around: &at}, &f.value, x)
		m.SetMapIndex(reflect.ValueOf(f.name).Convert(to.Type().Key()), x)
	}
	to.Set(m)
}

// list fills a slice.
func (r *reader) list(at place, v *value, to reflect.Value) {
	elem := to.Type().Elem()
	if v.shape != list {
		r.wrong(at, v, wanted(to.Type()), ", not "+v.shape.String()+writeAsList(v, elem))
		return
	}
	s := reflect.MakeSlice(to.Type(), len(v.items), len(v.items))
	for i := range v.items {
		r.read(place{path: at.path.Index(i), typ: elem, tolerant: at.tolerant, around: &at}, &v.items[i], s.Index(i))
	}
	to.Set(s)
}

// unmarshal fills what reads JSON itself, such as a time.
func (r *reader) unmarshal(at place, v *value, to json.Unmarshaler) {
	err := to.UnmarshalJSON(v.appendJSON(nil))
	switch t := to.(type) {
	case *metav1.Time:
		err = timeError(err, t.UTC())
	case *metav1.MicroTime:
		err = timeError(err, t.UTC())
	}
	if err != nil {
		r.errs = append(r.errs, field.TypeInvalid(at.path, v.shown(), err.Error()))
	}
}

// timeError says that what was read, with an error or none, is no time. Nor is
// one whose year in UTC, as it is written again, has not four digits.
func timeError(err error, utc time.Time) error {
	if err != nil || utc.Year() < 0 || utc.Year() > 9999 {
		return errors.New(`want a time, such as "2026-01-31T15:04:05Z"`)
	}
	return nil
}
