package policy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MostNetworks is how many networks a pod may have beside its default one: there
// are as many routing tables for them. MostInterfaces are its interfaces with that.
const (
	MostNetworks   = 152
	MostInterfaces = MostNetworks + 1
)

// TooMany refuses a list of more elements than it may have; nil for another.
func TooMany(path *field.Path, count, most int, what string) *field.Error {
	if count <= most {
		return nil
	}
	return &field.Error{
		Type: field.ErrorTypeTooMany, Field: path.String(), BadValue: count,
		Detail: fmt.Sprintf("%s: want at most %d", what, most),
	}
}

// Whoever writes an annotation may make 256 KiB of mistakes in it. Who is told of
// them needs fewer.
const (
	mostErrors = 10  // of one annotation
	mostValue  = 256 // bytes of a value
	mostDetail = 1 << 10
)

// FirstErrors are the errors of what stands at a path, as people can read them: the
// first ones, how many there are more, and of long values the beginnings. Done again,
// it changes nothing.
func FirstErrors(path *field.Path, errs field.ErrorList) field.ErrorList {
	var first field.ErrorList
	for i, err := range errs {
		if i == mostErrors && len(errs) > mostErrors+1 {
			return append(first, &field.Error{
				Type: field.ErrorTypeTooMany, Field: path.String(), BadValue: len(errs),
				Detail: fmt.Sprintf("errors: %d more than those before", len(errs)-i),
			})
		}
		one := *err
		one.Field, one.Detail = Beginning(one.Field, mostDetail), Beginning(one.Detail, mostDetail)
		if text, ok := one.BadValue.(string); ok {
			one.BadValue = Beginning(text, mostValue)
		}
		first = append(first, &one)
	}
	return first
}

// FirstWarnings are the first of warnings, and how many there are more.
func FirstWarnings(warnings []string) []string {
	if len(warnings) <= mostErrors+1 {
		return warnings
	}
	return append(warnings[:mostErrors:mostErrors], fmt.Sprintf("and %d more warnings", len(warnings)-mostErrors))
}

// Beginning is a text, or the beginning of one that has more than most bytes: in as
// many, with whole letters.
func Beginning(text string, most int) string {
	const more = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}
