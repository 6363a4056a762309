package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// setScalar sets a string, boolean or number. If v is none that fits, it returns
// what would be, and why v is not.
func setScalar(v *value, to reflect.Value) (want, why string) {
	switch {
	case to.Kind() == reflect.String && v.shape == text:
		to.SetString(v.text)
	case to.Kind() == reflect.Bool && v.shape == boolean:
		to.SetBool(v.text == "true")
	case to.CanInt() && v.shape == number:
		i, err := strconv.ParseInt(v.text, 10, to.Type().Bits())
		if err != nil {
			return wantedRange(to.Type()), ""
		}
		to.SetInt(i)
	case to.CanUint() && v.shape == number:
		u, err := strconv.ParseUint(v.text, 10, to.Type().Bits())
		if err != nil {
			return wantedRange(to.Type()), ""
		}
		to.SetUint(u)
	case to.CanFloat() && v.shape == number:
		f, err := strconv.ParseFloat(v.text, to.Type().Bits())
		if err != nil {
			return wantedRange(to.Type()), ""
		}
		to.SetFloat(f)
	default:
		return wanted(to.Type()), ", not " + v.shape.String() + quotes(v, to.Type())
	}
	return "", ""
}

// quotes says what a missing pair of quotes would mend, or one too many.
func quotes(v *value, t reflect.Type) string {
	switch {
	case t.Kind() == reflect.String && v.written != "":
		return fmt.Sprintf(": write %q", v.written)
	case t.Kind() == reflect.String && (v.shape == number || v.shape == boolean):
		return ": put it in quotes"
	case v.shape != text || len(v.text) > maxShown:
		return ""
	}
	resolved, err := parseYAML([]byte(v.text), 1)
	if err != nil {
		return ""
	}
	if t.Kind() == reflect.Bool && resolved.shape == boolean || t.Kind() != reflect.Bool && resolved.shape == number {
		return ": leave out the quotes"
	}
	return ""
}

// wanted returns what a type takes, in words.
func wanted(t reflect.Type) string {
	switch t = pointee(t); t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of " + several(t.Elem())
	case reflect.Map:
		return "an object whose values are " + several(t.Elem())
	case reflect.Struct:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

// several returns what a list of a type takes, in words.
func several(t reflect.Type) string {
	switch pointee(t).Kind() {
	case reflect.String:
		return "strings"
	case reflect.Struct:
		return "objects"
	default:
		return "values, each " + wanted(t)
	}
}

// wantedRange returns which numbers a type takes, in words.
func wantedRange(t reflect.Type) string {
	bits := t.Bits()
	signed := reflect.Zero(t).CanInt()
	switch {
	case reflect.Zero(t).CanFloat():
		return fmt.Sprintf("a number of at most %d bits", bits)
	case signed && bits == 64:
		return "a whole number of at most 64 bits"
	case signed:
		return fmt.Sprintf("a whole number from %d to %d", -1<<(bits-1), 1<<(bits-1)-1)
	case bits == 64:
		return "a whole number from 0 on, of at most 64 bits"
	default:
		return fmt.Sprintf("a whole number from 0 to %d", 1<<bits-1)
	}
}

// writeAsList says how a single value is written where a list is wanted.
func writeAsList(v *value, elem reflect.Type) string {
	if v.shape != text || pointee(elem).Kind() != reflect.String || len(v.text) > maxShown {
		return ""
	}
	return fmt.Sprintf(": write [%s]", appendString(nil, v.text))
}

// maxShown is how much of a string errors show.
const maxShown = 80

// shown returns the value for an error to show: lists and objects are described
// and not shown.
func (v *value) shown() any {
	switch v.shape {
	case text:
		if len(v.text) > maxShown {
			return strings.ToValidUTF8(v.text[:maxShown], "") + "…"
		}
		return v.text
	case number:
		if json.Valid([]byte(v.written)) { // what YAML has besides, such as 0x10, is no JSON
			return json.RawMessage(v.written)
		}
		return json.RawMessage(v.text)
	case boolean:
		return json.RawMessage(v.text)
	default:
		return field.OmitValueType{}
	}
}
