package api

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"railhead/internal/golden"
)

// TestNames holds how kubectl names and prints each kind against the reference.
func TestNames(t *testing.T) {
	t.Parallel()
	got := map[string]names{}
	for _, crd := range definitions(t) {
		n := names{scope: string(crd.Spec.Scope), short: crd.Spec.Names.ShortNames, categories: crd.Spec.Names.Categories}
		for _, v := range crd.Spec.Versions {
			n.versions = append(n.versions, v.Name)
			n.status = n.status || v.Subresources != nil && v.Subresources.Status != nil
			for _, c := range v.AdditionalPrinterColumns {
				if c.Priority == 0 {
					n.columns = append(n.columns, c.Name+" "+c.JSONPath)
				} else {
					n.wide = append(n.wide, c.Name+" "+c.JSONPath)
				}
			}
		}
		got[crd.Name] = n
	}
	if diff := cmp.Diff(wantNames, got, cmp.AllowUnexported(names{})); diff != "" {
		t.Errorf("names and columns (-want +got):\n%s", diff)
	}
}

// TestFields holds every field, its type, bounds and default.
func TestFields(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, crd := range definitions(t) {
		for _, v := range crd.Spec.Versions {
			fmt.Fprintf(&b, "%s %s\n", crd.Spec.Names.Kind, v.Name)
			walk(v.Schema.OpenAPIV3Schema, "", func(path string, s *crdv1.JSONSchemaProps, required bool) {
				if path != "" && !strings.HasPrefix(path, "metadata") {
					fmt.Fprintf(&b, "  %s\n", line(path, s, required))
				}
			})
		}
	}
	golden.Equal(t, "testdata/fields.txt", b.String())
}

// TestUnknownFieldsAreKept holds that the API server drops nothing that users
// write before it can be refused by name.
func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	for _, crd := range definitions(t) {
		if crd.Spec.Group == "railhead.io" {
			continue // users do not write these
		}
		for _, v := range crd.Spec.Versions {
			walk(v.Schema.OpenAPIV3Schema, "", func(path string, s *crdv1.JSONSchemaProps, _ bool) {
				switch {
				case s.Type != "object" || s.AdditionalProperties != nil:
				case path == "metadata", path == "status" && v.Subresources != nil, strings.HasPrefix(path, "status.") && v.Subresources != nil:
				case strings.HasSuffix(path, "Affinity.matchExpressions[]"):
					// A type of Kubernetes. All its fields are needed, so that no misspelt one is lost without an error.
				case s.XPreserveUnknownFields == nil || !*s.XPreserveUnknownFields:
					t.Errorf("%s: %q loses unknown fields: its type needs +kubebuilder:pruning:PreserveUnknownFields", crd.Name, path)
				}
			})
		}
	}
}

// TestExplained holds that kubectl explain has words for every field.
func TestExplained(t *testing.T) {
	t.Parallel()
	for _, crd := range definitions(t) {
		for _, v := range crd.Spec.Versions {
			walk(v.Schema.OpenAPIV3Schema, "", func(path string, s *crdv1.JSONSchemaProps, _ bool) {
				if s.Description == "" && path != "metadata" && !strings.HasSuffix(path, "[]") && !strings.HasSuffix(path, "[*]") {
					t.Errorf("%s: %q is not explained", crd.Name, path)
				}
			})
		}
	}
}

// TestValid holds that an API server takes the definitions: their schemas are
// structural, defaults keep them, and CEL rules compile and cost little enough.
func TestValid(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	for _, crd := range definitions(t) {
		scheme.Default(crd)
		var internal apiextensions.CustomResourceDefinition
		if err := scheme.Convert(crd, &internal, nil); err != nil {
			t.Fatal(err)
		}
		internal.Status.StoredVersions = []string{crd.Spec.Versions[0].Name} // as the API server sets it first
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), &internal) {
			t.Errorf("%s: %v", crd.Name, err)
		}
	}
}

// definitions returns the generated definitions, by file name.
func definitions(t *testing.T) []*crdv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../charts/railhead/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no ../charts/railhead/crds/*.yaml", err)
	}
	crds := make([]*crdv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crds[i] = new(crdv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict(data, crds[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return crds
}

// walk calls visit for a schema and all below it. Items of lists are "[]",
// values of maps "[*]".
func walk(s *crdv1.JSONSchemaProps, path string, visit func(path string, s *crdv1.JSONSchemaProps, required bool)) {
	var below func(s *crdv1.JSONSchemaProps, path string, required bool)
	below = func(s *crdv1.JSONSchemaProps, path string, required bool) {
		visit(path, s, required)
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[name]
			below(&p, strings.TrimPrefix(path+"."+name, "."), slices.Contains(s.Required, name))
		}
		if s.Items != nil {
			below(s.Items.Schema, path+"[]", false)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			below(s.AdditionalProperties.Schema, path+"[*]", false)
		}
	}
	below(s, path, false)
}

// line returns a field in a line of testdata/fields.txt.
func line(path string, s *crdv1.JSONSchemaProps, required bool) string {
	words := []string{path, s.Type}
	if s.Format != "" {
		words = append(words, s.Format)
	}
	if required {
		words = append(words, "required")
	}
	if s.Default != nil {
		words = append(words, "default="+string(s.Default.Raw))
	}
	if s.Minimum != nil {
		words = append(words, fmt.Sprint("min=", *s.Minimum))
	}
	if s.Maximum != nil {
		words = append(words, fmt.Sprint("max=", *s.Maximum))
	}
	for _, e := range s.Enum {
		words = append(words, string(e.Raw))
	}
	for _, rule := range s.XValidations {
		words = append(words, "rule{"+rule.Rule+"}")
	}
	return strings.Join(words, " ")
}
