package manifest

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// value is one value of a document, as it is written.
type value struct {
	shape   shape
	text    string  // of a boolean or number as JSON has it, of a string its content
	written string  // of a boolean or number of YAML, as it is written
	items   []value // of a list
	fields  []entry // of an object, in order; names may come twice
	line    int     // in the stream, from 1
}

// entry is one field of an object.
type entry struct {
	name  string
	line  int
	value value
}

// shape is what a value is, whatever it is for.
type shape int

// The shapes of JSON.
const (
	null shape = iota
	boolean
	number
	text
	list
	object
)

// String returns the shape in the words of errors.
func (s shape) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[s]
}

// field returns the value of an object's field, of the last one if it is there
// twice, and nil if it is not.
func (v *value) field(name string) *value {
	for i := range slices.Backward(v.fields) {
		if v.fields[i].name == name {
			return &v.fields[i].value
		}
	}
	return nil
}

// appendJSON appends the value as JSON. Of fields with one name it takes the last.
func (v *value) appendJSON(b []byte) []byte {
	switch v.shape {
	case text:
		return appendString(b, v.text)
	case boolean, number:
		return append(b, v.text...)
	case list:
		b = append(b, '[')
		for i := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.items[i].appendJSON(b)
		}
		return append(b, ']')
	case object:
		return v.appendFields(b)
	default:
		return append(b, "null"...)
	}
}

// appendFields appends an object as JSON.
func (v *value) appendFields(b []byte) []byte {
	b = append(b, '{')
	for i := range v.fields {
		f := &v.fields[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, f.name), ':')
		b = f.value.appendJSON(b)
	}
	return append(b, '}')
}

// appendString appends a string as JSON.
func appendString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		return append(b, `""`...) // no string fails: invalid UTF-8 is replaced
	}
	return append(b, quoted...)
}

// canonical returns a number of JSON or YAML in the shortest way JSON has: whole
// numbers without point and exponent, where that loses nothing.
func canonical(s string) string {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return strconv.FormatInt(i, 10)
	}
	if u, err := strconv.ParseUint(s, 10, 64); err == nil {
		return strconv.FormatUint(u, 10)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !strings.ContainsAny(s, ".eE") {
		return s // beyond 64 bits, and JSON all the same
	}
	const exact = 1 << 53 // above, floats skip whole numbers
	if f == math.Trunc(f) && math.Abs(f) <= exact {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// parse reads one document, whose first line is the given one of its stream.
func parse(data []byte, line int) (*value, error) {
	if looksLikeJSON(data) {
		v, err := parseJSON(data, line)
		if err == nil {
			return v, nil
		}
		if v, yamlErr := parseYAML(data, line); yamlErr == nil {
			return v, nil // a YAML object in braces
		}
		return nil, err
	}
	return parseYAML(data, line)
}

// looksLikeJSON says whether a document begins as a JSON object or list does.
func looksLikeJSON(data []byte) bool {
	begin := strings.TrimLeft(string(data[:min(len(data), 512)]), " \t\r\n")
	return strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[")
}
