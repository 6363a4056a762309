// Package validation says of manifests what admission would say of their
// objects, all of them together, without a cluster. Objects of other kinds are
// counted; of pods and what makes pods, the annotations are checked.
//
// It reads no file and no API.
package validation

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/manifest"
)

// Source is a file, or a stream that is named like one.
type Source struct {
	Name string
	Text []byte
}

// Options are what manifests do not say.
type Options struct {
	Config    policy.Config // of the cluster
	Namespace string        // of objects that name none
}

// Review reviews all objects of the sources as if they were in one cluster, in
// which there is nothing else. In which order they come makes no difference.
func Review(sources []Source, o Options) *Report {
	r := &review{options: o, catalog: policy.NewCatalog(), first: map[string]*entry{}}
	r.catalog.SetConfig(o.Config)
	for _, s := range sources {
		documents := manifest.Documents(s.Text)
		if len(documents) == 0 {
			r.entries = append(r.entries, empty(s.Name))
		}
		for _, d := range documents {
			r.read(s.Name, d)
		}
	}
	r.fillIn()
	r.judge()
	report := &Report{Objects: []Object{}}
	for _, e := range r.entries {
		e.answer.Accepted = len(e.answer.Errors) == 0
		report.add(e.answer)
	}
	return report
}

// review is a review under way.
type review struct {
	options Options
	catalog *policy.Catalog
	entries []*entry
	first   map[string]*entry // by kind, namespace and name
}

// entry is a document.
type entry struct {
	document manifest.Document
	object   manifest.Object // nil where it is of another kind or cannot be read
	foreign  map[string]any  // an object of another kind
	decoding field.ErrorList // what is wrong with how the object is written
	judged   bool            // rules are for the object: it is the first of its name
	answer   Object
}

// empty is what there is to say of a source without a document.
func empty(file string) *entry {
	const text = "holds no object: a template that rendered nothing?"
	return &entry{answer: Object{File: file, Line: 1, NoObject: true, Errors: []Finding{{Line: 1, Text: text}}}}
}

// read decodes a document.
func (r *review) read(file string, d manifest.Document) {
	e := &entry{document: d, answer: Object{File: file, Line: d.Line}}
	r.entries = append(r.entries, e)
	object, errs, err := d.Decode()
	switch {
	case errors.Is(err, manifest.ErrUnknownKind):
		e.answer.Foreign = true
		e.foreign = e.identify(r.options.Namespace)
		return
	case err != nil:
		e.answer.NoObject = true
		e.answer.Errors = append(e.answer.Errors, unreadable(d, err))
		return
	}
	if object == nil { // its kind is nearly one of ours
		e.refuse(errs)
		e.identify("")
		return
	}
	e.object, e.decoding = object, errs
	e.answer.Kind = object.GetObjectKind().GroupVersionKind().Kind
	switch {
	case !isNamespaced(object):
		object.SetNamespace("") // as the API server does
	case object.GetNamespace() == "":
		object.SetNamespace(r.options.Namespace)
	}
	e.answer.Namespace, e.answer.Name = object.GetNamespace(), object.GetName()
	r.claim(e)
}

// claim refuses the second object of a name. Where the cluster makes the name,
// there is no second.
func (r *review) claim(e *entry) {
	key := e.answer.Kind + " " + e.answer.FullName()
	if first := r.first[key]; first != nil && e.answer.Name != "" {
		e.refuse(manifest.Beside(e.decoding, nil))
		e.answer.Errors = append(e.answer.Errors, Finding{
			Line: e.document.LineOf("metadata.name"),
			Text: fmt.Sprintf("is there twice, at %s:%d and at %s:%d: want one of them",
				first.answer.File, first.answer.Line, e.answer.File, e.answer.Line),
		})
		return
	}
	r.first[key], e.judged = e, true
}

// fillIn makes all objects known as they would be stored. Pools take what they
// leave out from subnets, which therefore come first.
func (r *review) fillIn() {
	ordered := slices.SortedStableFunc(r.known(), func(a, b *entry) int { return cmp.Compare(turn(a), turn(b)) })
	for _, e := range ordered {
		e.warn(manifest.WarningsBeside(e.decoding, r.catalog.Default(e.object).Warnings))
		if e.answer.Name != "" {
			r.catalog.Put(e.object)
		}
	}
}

func turn(e *entry) int {
	if _, ok := e.object.(*v2beta1.SpiderSubnet); ok {
		return 0
	}
	return 1
}

// known yields the objects that rules are for.
func (r *review) known() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range r.entries {
			if e.judged && !yield(e) {
				return
			}
		}
	}
}

// judge reviews the objects, each beside all others.
func (r *review) judge() {
	for e := range r.known() {
		verdict := r.catalog.Review(e.object, nil)
		e.refuse(manifest.Beside(e.decoding, append(reviewMeta(e.object), verdict.Errors...)))
		e.warn(manifest.WarningsBeside(e.decoding, verdict.Warnings))
	}
	for _, e := range r.entries {
		if e.foreign != nil {
			e.judgeForeign(r.catalog)
		}
	}
}

func (e *entry) refuse(errs field.ErrorList) {
	for _, err := range errs {
		e.answer.Errors = append(e.answer.Errors, findingOf(e.document, err))
	}
}

// warn adds warnings that are not there yet.
func (e *entry) warn(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(e.answer.Warnings, w) {
			e.answer.Warnings = append(e.answer.Warnings, w)
		}
	}
}
