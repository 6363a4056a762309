package validation

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy/manifest"
)

// Report is what there is to say.
type Report struct {
	// Objects are those of our kinds, documents that cannot be read, and
	// objects of other kinds with something to say about them, as they stand in
	// the sources.
	Objects []Object `json:"objects"`
	// Workloads is how many pods, and objects that make pods, had their annotations
	// checked and are not refused.
	Workloads int `json:"workloads"`
	// Others is how many objects are of kinds in which nothing is checked but a
	// namespace's annotations, and are not refused.
	Others int `json:"others"`
}

// add adds an object, and counts it where it is of a kind that is not ours.
func (r *Report) add(o Object) {
	switch {
	case !o.Foreign || !o.Accepted:
	case o.Workload:
		r.Workloads++
	default:
		r.Others++
	}
	if !o.Foreign || !o.isSilent() {
		r.Objects = append(r.Objects, o)
	}
}

// Accepted is how many objects of our kinds would be accepted.
func (r *Report) Accepted() int {
	return r.count(func(o *Object) bool { return o.Accepted && !o.Foreign })
}

// Refused is how many objects would be refused.
func (r *Report) Refused() int {
	return r.count(func(o *Object) bool { return !o.Accepted && !o.NoObject })
}

// Unreadable is how many documents are no objects.
func (r *Report) Unreadable() int {
	return r.count(func(o *Object) bool { return o.NoObject })
}

func (r *Report) count(is func(*Object) bool) int {
	n := 0
	for i := range r.Objects {
		if is(&r.Objects[i]) {
			n++
		}
	}
	return n
}

// Object is what there is to say about one object.
type Object struct {
	File      string    `json:"file"`
	Line      int       `json:"line"`
	Kind      string    `json:"kind,omitempty"` // empty where the document cannot be read
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name,omitempty"`
	Foreign   bool      `json:"foreign,omitempty"`  // of a kind that is not ours
	Workload  bool      `json:"workload,omitempty"` // a pod, or what makes pods
	NoObject  bool      `json:"noObject,omitempty"` // the document cannot be read
	Accepted  bool      `json:"accepted"`
	Errors    []Finding `json:"errors,omitempty"`
	// Warnings are about what is understood otherwise than written, or has no effect.
	Warnings []string `json:"warnings,omitempty"`
	// Notes are about what the files do not have and the cluster may.
	Notes []string `json:"notes,omitempty"`
}

// FullName is "namespace/name", or the name of what is in no namespace.
func (o *Object) FullName() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// Finding is an error of an object.
type Finding struct {
	Line  int    `json:"line"`
	Path  string `json:"path,omitempty"` // empty where it is about the document
	Text  string `json:"text"`           // what is wrong, with the value and what is wanted
	Value any    `json:"value,omitempty"`
}

// isSilent tells whether there is nothing to say about an object but that it
// is there.
func (o *Object) isSilent() bool { return len(o.Errors)+len(o.Warnings)+len(o.Notes) == 0 }

// unreadable is why a document is no object. Where the error says in which line
// it is, that is the finding's. Of a template the error would only confuse.
func unreadable(d manifest.Document, err error) Finding {
	const render = "looks like a Helm template: render it first: helm template CHART | railhead validate -f -"
	f := Finding{Line: d.Line, Text: err.Error()}
	var line int
	if _, scanErr := fmt.Sscanf(f.Text, "line %d: ", &line); scanErr == nil {
		f.Line, f.Text = line, strings.TrimPrefix(f.Text, fmt.Sprintf("line %d: ", line))
	}
	if bytes.Contains(d.Data, []byte("{{")) && utf8.Valid(d.Data) && !bytes.Contains(d.Data, []byte{0}) {
		f.Text = render
	}
	return f
}

func findingOf(d manifest.Document, err *field.Error) Finding {
	f := Finding{Line: d.LineOf(err.Field), Path: err.Field, Text: err.ErrorBody()}
	if err.Type != field.ErrorTypeRequired && err.Type != field.ErrorTypeForbidden {
		f.Value = err.BadValue
	}
	return f
}
