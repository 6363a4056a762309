package api

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects are the objects of a stream of manifests.
func Objects(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		var content map[string]any
		err := decoder.Decode(&content)
		if err != nil && err.Error() == "EOF" {
			return objects
		}
		if err != nil {
			t.Fatalf("manifest: %v\n%s", err, manifests)
		}
		if len(content) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
}

// Make creates an object without kubectl and returns it as it was stored.
func (s *Server) Make(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	made := o.DeepCopy()
	if err := s.Create(t.Context(), made); err != nil {
		t.Fatalf("create %s: %v", title(o), err)
	}
	return made
}

// Lookup reads an object; nil if there is none.
func (s *Server) Lookup(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	kinds, _, err := s.Scheme().ObjectKinds(o)
	if u, ok := o.(*unstructured.Unstructured); ok {
		found.SetGroupVersionKind(u.GroupVersionKind())
	} else if err == nil {
		found.SetGroupVersionKind(kinds[0])
	}
	err = s.Get(t.Context(), client.ObjectKeyFromObject(o), found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatalf("get %s: %v", title(o), err)
	}
	return found
}

// End deletes objects and waits until they are gone.
func (s *Server) End(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		Eventually(t, func() string { // replicas may hear late of what allows it
			if err := s.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
				return fmt.Sprintf("delete %s: %v", title(o), err)
			}
			return ""
		})
	}
	for _, o := range objects {
		Eventually(t, func() string {
			if s.Lookup(t, o) != nil {
				return "the end of " + title(o)
			}
			return ""
		})
	}
}

// title is an object in messages.
func title(o client.Object) string {
	return fmt.Sprintf("%s %s", o.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(o))
}
