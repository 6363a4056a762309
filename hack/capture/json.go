package main

import (
	"bytes"
	"encoding/json"
	"strings"
)

// layOutJSON writes a value as JSON, an object a line: long lists can be
// looked through, and a change of an object shows as one line.
func layOutJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	root, err := parseJSON(text.Bytes())
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	root.write(&b, "", true)
	b.WriteByte('\n')
	return []byte(b.String()), nil
}

// jsonValue is a JSON value with its members in order.
type jsonValue struct {
	open, end string // brackets; empty for a scalar
	scalar    string
	members   []jsonMember
}

// jsonMember is a member of an object, or an element of an array.
type jsonMember struct {
	key   string // as it is written; empty in an array
	value *jsonValue
}

func parseJSON(text []byte) (*jsonValue, error) {
	switch text = bytes.TrimSpace(text); text[0] {
	case '[':
		return parseArray(text)
	case '{':
		return parseObject(text)
	default:
		return &jsonValue{scalar: string(text)}, nil
	}
}

func parseArray(text []byte) (*jsonValue, error) {
	v := &jsonValue{open: "[", end: "]"}
	var elements []json.RawMessage
	if err := json.Unmarshal(text, &elements); err != nil {
		return nil, err
	}
	for _, e := range elements {
		value, err := parseJSON(e)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, jsonMember{value: value})
	}
	return v, nil
}

func parseObject(text []byte) (*jsonValue, error) {
	v := &jsonValue{open: "{", end: "}"}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil { // the bracket
		return nil, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		quoted, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, err
		}
		value, err := parseJSON(raw)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, jsonMember{key: string(quoted) + ": ", value: value})
	}
	return v, nil
}

// isObject, isList and isTall tell how a value is laid out: a list of objects
// has a line for each; an object stands in one line, but for such lists, unless
// it has several or nothing but objects.
func (v *jsonValue) isObject() bool { return v.open == "{" }

func (v *jsonValue) isList() bool {
	return v.open == "[" && len(v.members) > 0 && v.members[0].value.isObject()
}

func (v *jsonValue) isTall() bool {
	lists, objects := 0, 0
	for _, m := range v.members {
		if m.value.isList() {
			lists++
		}
		if m.value.isObject() {
			objects++
		}
	}
	return v.isList() || v.isObject() && (lists > 1 || objects > 0 && objects == len(v.members))
}

func (v *jsonValue) write(b *strings.Builder, indent string, tall bool) {
	b.WriteString(v.open + v.scalar)
	tall = len(v.members) > 0 && (tall || v.isTall())
	for i, m := range v.members {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case tall:
			b.WriteString("\n" + indent + "  ")
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(m.key)
		inner := indent
		if tall {
			inner += "  "
		}
		m.value.write(b, inner, false)
	}
	if tall {
		b.WriteString("\n" + indent)
	}
	b.WriteString(v.end)
}
