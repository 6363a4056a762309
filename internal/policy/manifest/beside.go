package manifest

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// meant is the BadValue of an unknown field: the paths of the fields it was
// probably meant to be. Errors of the type Forbidden do not show it.
type meant []string

// Beside returns what there is to say of an object of which decode is what
// Decode said and rules what is wrong by rules: all of decode, ordered by path so
// that a document and the JSON that kubectl makes of it say the same, and of rules
// what does not follow from it. An error at, below or above the path of one of
// decode may follow, and so may one at or below a field that an unknown one was
// meant to be.
func Beside(decode, rules field.ErrorList) field.ErrorList {
	all := slices.SortedStableFunc(slices.Values(decode), func(a, b *field.Error) int { return comparePaths(a.Field, b.Field) })
	for _, rule := range rules {
		if !slices.ContainsFunc(decode, func(e *field.Error) bool { return mayFollow(rule.Field, e) }) {
			all = append(all, rule)
		}
	}
	return all
}

// WarningsBeside returns the warnings of rules that do not follow from what Decode
// said. Those about a field begin with its path and ": ".
func WarningsBeside(decode field.ErrorList, warnings []string) []string {
	return slices.DeleteFunc(slices.Clone(warnings), func(w string) bool {
		path, _, ok := strings.Cut(w, ": ")
		return ok && slices.ContainsFunc(decode, func(e *field.Error) bool { return mayFollow(path, e) })
	})
}

// mayFollow says whether an error at path may follow from one of Decode.
func mayFollow(path string, from *field.Error) bool {
	if isWithin(path, from.Field) || isWithin(from.Field, path) {
		return true
	}
	fields, _ := from.BadValue.(meant)
	return slices.ContainsFunc(fields, func(f string) bool { return isWithin(path, f) })
}

// isWithin says whether path is around or leads into it.
func isWithin(path, around string) bool {
	rest, ok := strings.CutPrefix(path, around)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// comparePaths orders paths by their letters, and numbers in them by what they
// count: ips[9] is before ips[10].
func comparePaths(a, b string) int {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	for same > 0 && isDigit(a[same-1]) {
		same-- // the numbers differ, and begin alike
	}
	a, b = a[same:], b[same:]
	if digitsOf(a) > 0 && digitsOf(b) > 0 {
		if c := cmp.Compare(digitsOf(a), digitsOf(b)); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b)
}

// digitsOf returns how many digits a text begins with.
func digitsOf(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
