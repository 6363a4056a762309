package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is a pointer to a type of api/.
type Object interface {
	metav1.Object
	runtime.Object
}

// ErrUnknownKind is what Decode returns of an object of a kind that is not ours.
var ErrUnknownKind = errors.New("not an object that is checked here")

// ErrEmpty says that a document has no value.
var ErrEmpty = errors.New("document is empty: want an object with apiVersion, kind and metadata")

// Decode makes an object of one JSON or YAML document. The list has, in the
// document's order, every unknown field, wrong type, number out of range and
// name given twice; the object then has what could be understood, so that it can
// be named. Null stands for absent. Of metadata and status, which users and
// their API servers may have newer than we are, unknown fields are passed over.
//
// The error is for documents without an object: ErrUnknownKind, ErrEmpty, or
// why it could not be read.
func Decode(data []byte) (Object, field.ErrorList, error) {
	docs := Documents(data)
	switch len(docs) {
	case 0:
		return nil, nil, ErrEmpty
	case 1:
		return docs[0].Decode()
	default:
		return nil, nil, fmt.Errorf("%d objects, where one is wanted", len(docs))
	}
}

// Decode is Decode of the document.
func (d Document) Decode() (Object, field.ErrorList, error) {
	if d.err != nil {
		return nil, nil, d.err
	}
	if d.root == nil {
		return nil, nil, ErrEmpty
	}
	if d.root.shape != object {
		return nil, nil, fmt.Errorf("line %d: want an object with apiVersion, kind and metadata, not %s", d.root.line, d.root.shape)
	}
	o, errs, err := emptyOf(d.root)
	if err != nil || len(errs) > 0 {
		return nil, errs, err
	}
	r := reader{kind: d.root.field("kind").text}
	r.object(place{typ: reflect.TypeOf(o).Elem()}, d.root, reflect.ValueOf(o).Elem())
	return o, r.errs, nil
}

// emptyOf returns an empty object of the kind that a document says it is. A kind
// that is nearly one of ours is an error, and none of ours ErrUnknownKind.
func emptyOf(root *value) (Object, field.ErrorList, error) {
	version, errs := textOf(root, "apiVersion", "an API version, such as "+kinds[0].version.String())
	kind, kindErrs := textOf(root, "kind", "a kind, such as "+kinds[0].kind)
	if errs = append(errs, kindErrs...); len(errs) > 0 {
		return nil, errs, nil
	}
	for _, k := range kinds {
		if k.version.String() == version && k.kind == kind {
			return k.empty(), nil, nil
		}
	}
	if errs := nearKind(version, kind); len(errs) > 0 {
		return nil, errs, nil
	}
	return nil, nil, fmt.Errorf("%s of %s: %w", kind, version, ErrUnknownKind)
}

// textOf returns a string that an object must have at its root.
func textOf(root *value, name, want string) (string, field.ErrorList) {
	path := field.NewPath(name)
	switch v := root.field(name); {
	case v == nil || v.shape == null || v.text == "" && v.shape == text:
		return "", field.ErrorList{field.Required(path, "want "+want)}
	case v.shape != text:
		return "", field.ErrorList{field.TypeInvalid(path, v.shown(), "want a string, not "+v.shape.String())}
	default:
		return v.text, nil
	}
}

// nearKind returns what is wrong with a kind that is ours but for its group, its
// version or a letter, and nothing if it is another.
func nearKind(version, kind string) field.ErrorList {
	var versions, siblings []string
	for _, k := range kinds {
		if k.kind == kind {
			versions = append(versions, k.version.String())
		}
		if k.version.String() == version {
			siblings = append(siblings, k.kind)
		}
	}
	if len(versions) > 0 {
		want := kind + " is accepted as " + strings.Join(versions, " or ")
		return field.ErrorList{field.Invalid(field.NewPath("apiVersion"), version, want)}
	}
	if name := nearest(kind, siblings); name != "" {
		return field.ErrorList{field.Invalid(field.NewPath("kind"), kind, fmt.Sprintf("did you mean %q?", name))}
	}
	return nil
}
