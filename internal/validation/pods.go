package validation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"railhead/internal/policy"
	"railhead/internal/policy/annotation"
)

// identify reads an object without a type of ours, and names it. The namespace
// is that of objects that name none. An object that Kubernetes would not
// understand is not ours to refuse, and nil.
func (e *entry) identify(namespace string) map[string]any {
	var content map[string]any
	if err := yaml.Unmarshal(e.document.Data, &content); err != nil {
		return nil
	}
	object := unstructured.Unstructured{Object: content}
	e.answer.Kind, e.answer.Name, e.answer.Namespace = object.GetKind(), object.GetName(), object.GetNamespace()
	if e.answer.Namespace == "" && e.answer.Kind != "Namespace" {
		e.answer.Namespace = namespace
	}
	return content
}

// judgeForeign checks the annotations of a namespace, or of each pod that an
// object is or makes.
func (e *entry) judgeForeign(catalog *policy.Catalog) {
	if e.answer.Kind == "Namespace" {
		path, annotations := e.annotationsOf(nil, e.foreign)
		errs, warnings := annotation.ReviewNamespace(path, annotations)
		e.refuse(errs)
		e.warn(warnings)
		e.matchNetworks(catalog, annotations)
		return
	}
	eachPod(nil, e.foreign, func(at *field.Path, pod map[string]any) {
		e.answer.Workload = true
		path, annotations := e.annotationsOf(at, pod)
		errs, warnings := annotation.ReviewPod(path, annotations)
		e.refuse(errs)
		e.warn(warnings)
		e.matchNetworks(catalog, annotations)
	})
	slices.SortStableFunc(e.answer.Errors, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
}

// eachPod calls visit for each pod or pod template in a value: an object whose
// spec has containers. So it finds them in kinds that came after it, such as
// JobSet.
func eachPod(at *field.Path, value any, visit func(at *field.Path, pod map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		if spec, ok := value["spec"].(map[string]any); ok {
			if _, ok := spec["containers"].([]any); ok {
				visit(at, value)
				return
			}
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			eachPod(at.Child(key), value[key], visit)
		}
	case []any:
		for i := range value {
			eachPod(at.Index(i), value[i], visit)
		}
	}
}

// annotationsOf returns the annotations of an object or template, and where
// they are.
func (e *entry) annotationsOf(at *field.Path, object map[string]any) (*field.Path, map[string]string) {
	path := at.Child("metadata", "annotations")
	values, _, err := unstructured.NestedMap(object, "metadata", "annotations")
	if err != nil {
		e.refuse(field.ErrorList{field.Invalid(path, "", "want an object of strings")})
	}
	annotations := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, ok := values[key].(string)
		if !ok {
			e.refuse(field.ErrorList{field.TypeInvalid(path.Key(key), values[key], "want a string: put it between quotes")})
			continue
		}
		annotations[key] = text
	}
	return path, annotations
}

// matchNetworks notes which values name no network in the files.
func (e *entry) matchNetworks(catalog *policy.Catalog, annotations map[string]string) {
	for _, key := range policy.InjectKeys() {
		for _, value := range policy.InjectValues(annotations[key]) {
			if len(catalog.NetworksFor(key, value)) == 0 {
				e.answer.Notes = append(e.answer.Notes, fmt.Sprintf(
					"no SpiderMultusConfig in these files has annotation %s with the value %q: want one in the cluster", key, value))
			}
		}
	}
}
