package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// parseJSON reads one JSON document.
func parseJSON(data []byte, line int) (*value, error) {
	if err := validJSON(data, line); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	r := jsonReader{tokens: d, data: data, line: line}
	v, err := r.value()
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", r.line, err)
	}
	return &v, nil
}

// validJSON returns where a document is no JSON. It also bounds how deep one
// goes, which a token reader does not.
func validJSON(data []byte, line int) error {
	if json.Valid(data) {
		return nil
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:min(max(syntax.Offset, 0), int64(len(data)))]
		return fmt.Errorf("line %d: is no JSON: %w", line+bytes.Count(before, []byte("\n")), err)
	}
	return err
}

// jsonReader reads values from valid JSON, and keeps what a decoder drops: order,
// names that come twice, and lines.
type jsonReader struct {
	tokens *json.Decoder
	data   []byte
	read   int // of data, up to where lines are counted
	line   int
}

// token returns the next token, and moves line to its end.
func (r *jsonReader) token() (json.Token, error) {
	t, err := r.tokens.Token()
	at := int(r.tokens.InputOffset())
	r.line += bytes.Count(r.data[r.read:at], []byte("\n"))
	r.read = at
	return t, err
}

// value reads the next value.
func (r *jsonReader) value() (value, error) {
	t, err := r.token()
	if err != nil {
		return value{}, err
	}
	v := value{line: r.line}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return v, r.list(&v)
		}
		return v, r.object(&v)
	case bool:
		v.shape, v.text = boolean, fmt.Sprint(t)
	case json.Number:
		v.shape, v.text = number, canonical(t.String())
	case string:
		v.shape, v.text = text, t
	}
	return v, nil
}

// list reads the items of a list and its end.
func (r *jsonReader) list(v *value) error {
	v.shape = list
	for r.tokens.More() {
		item, err := r.value()
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, err := r.token()
	return err
}

// object reads the fields of an object and its end.
func (r *jsonReader) object(v *value) error {
	v.shape = object
	for r.tokens.More() {
		t, err := r.token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok {
			return io.ErrUnexpectedEOF
		}
		at := r.line
		field, err := r.value()
		if err != nil {
			return err
		}
		v.fields = append(v.fields, entry{name, at, field})
	}
	_, err := r.token()
	return err
}
