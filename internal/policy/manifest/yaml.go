package manifest

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxAliased is how many values may come of aliases: a few lines of them can
// stand for more than memory holds.
const maxAliased = 10_000

// parseYAML reads one YAML document.
func parseYAML(data []byte, line int) (*value, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, syntaxError(err, line)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, ErrEmpty
	}
	r := yamlReader{offset: line - 1, aliased: maxAliased}
	v, err := r.value(doc.Content[0])
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// syntaxError returns why a document is no YAML, with the line in its stream.
func syntaxError(err error, line int) error {
	rest, _ := strings.CutPrefix(err.Error(), "yaml: ")
	if at, why, ok := strings.Cut(strings.TrimPrefix(rest, "line "), ": "); ok {
		if n, err := strconv.Atoi(at); err == nil {
			return fmt.Errorf("line %d: is no YAML: %s", line-1+n, why)
		}
	}
	return fmt.Errorf("document from line %d on is no YAML: %s", line, rest)
}

// yamlReader makes values of YAML's nodes.
type yamlReader struct {
	offset  int // of lines, between document and stream
	inAlias int // how many aliases stand around this node
	aliased int // values that aliases may still have
}

// value returns what a node says.
func (r *yamlReader) value(n *yaml.Node) (value, error) {
	if r.inAlias > 0 {
		if r.aliased--; r.aliased < 0 {
			return value{}, fmt.Errorf("line %d: aliases stand for more than %d values: write some of them out", r.offset+n.Line, maxAliased)
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		r.inAlias++
		v, err := r.value(n.Alias)
		r.inAlias--
		return v, err
	case yaml.SequenceNode:
		return r.list(n)
	case yaml.MappingNode:
		return r.object(n)
	default:
		return r.scalar(n)
	}
}

// list returns a sequence.
func (r *yamlReader) list(n *yaml.Node) (value, error) {
	v := value{shape: list, line: r.offset + n.Line}
	for _, c := range n.Content {
		item, err := r.value(c)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	return v, nil
}

// object returns a mapping, with what is merged into it behind its own fields.
func (r *yamlReader) object(n *yaml.Node) (value, error) {
	v := value{shape: object, line: r.offset + n.Line}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, val)
			continue
		}
		name, err := r.scalar(key)
		if err != nil {
			return value{}, err
		}
		field, err := r.value(val)
		if err != nil {
			return value{}, err
		}
		v.fields = append(v.fields, entry{name.text, r.offset + key.Line, field})
	}
	for _, m := range merged {
		if err := r.merge(&v, m); err != nil {
			return value{}, err
		}
	}
	return v, nil
}

// merge adds the fields of an object, or of several, that v lacks.
func (r *yamlReader) merge(v *value, n *yaml.Node) error {
	from, err := r.value(n)
	if err != nil {
		return err
	}
	objects := []value{from}
	if from.shape == list {
		objects = from.items
	}
	for _, o := range objects {
		if o.shape != object {
			return fmt.Errorf("line %d: << merges %s: want an object or a list of them", r.offset+n.Line, o.shape)
		}
		for _, f := range o.fields {
			if v.field(f.name) == nil {
				v.fields = append(v.fields, f)
			}
		}
	}
	return nil
}

// scalar returns a scalar by the rules of YAML 1.1, which kubectl has.
func (r *yamlReader) scalar(n *yaml.Node) (value, error) {
	v := value{shape: text, text: n.Value, line: r.offset + n.Line}
	if n.Kind == yaml.AliasNode {
		return r.scalar(n.Alias)
	}
	if n.Kind != yaml.ScalarNode {
		return v, fmt.Errorf("line %d: an object or a list is no name of a field: want a string", v.line)
	}
	switch tag := n.ShortTag(); tag {
	case "!!null":
		v.shape, v.text = null, "null"
	case "!!bool", "!!int", "!!float", "!!binary":
		var x any
		if err := n.Decode(&x); err != nil {
			return v, fmt.Errorf("line %d: %q is no %s: %w", v.line, n.Value, tag[2:], err)
		}
		v.set(x)
		v.written = n.Value
	case "!!str":
		const plain = 0
		if b, ok := oldBooleans[n.Value]; ok && n.Style == plain {
			v.set(b)
			v.written = n.Value
		}
	}
	return v, nil
}

// set makes v what YAML resolved a scalar to. Infinities and what is no number
// have no JSON and stay text.
func (v *value) set(x any) {
	switch x := x.(type) {
	case bool:
		v.shape, v.text = boolean, strconv.FormatBool(x)
	case string:
		v.text = x
	case float64:
		if !math.IsInf(x, 0) && !math.IsNaN(x) {
			v.shape, v.text = number, canonical(strconv.FormatFloat(x, 'g', -1, 64))
		}
	default:
		v.shape, v.text = number, fmt.Sprint(x) // int, int64, uint64
	}
}
