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
func Objects(tb testing.TB, manifests string) []*unstructured.Unstructured {
	tb.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		var content map[string]any
		err := decoder.Decode(&content)
		if err != nil && err.Error() == "EOF" {
			return objects
		}
		if err != nil {
			tb.Fatalf("manifest: %v\n%s", err, manifests)
		}
		if len(content) > 0 {
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
}

// Make creates an object without kubectl and returns it as it was stored.
func (s *Server) Make(tb testing.TB, o *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()
	made := o.DeepCopy()
	if err := s.Create(tb.Context(), made); err != nil {
		tb.Fatalf("create %s: %v", title(o), err)
	}
	return made
}

// Lookup reads an object; nil if there is none.
func (s *Server) Lookup(tb testing.TB, o client.Object) *unstructured.Unstructured {
	tb.Helper()
	found := &unstructured.Unstructured{}
	kinds, _, err := s.Scheme().ObjectKinds(o)
	if u, ok := o.(*unstructured.Unstructured); ok {
		found.SetGroupVersionKind(u.GroupVersionKind())
	} else if err == nil {
		found.SetGroupVersionKind(kinds[0])
	}
	err = s.Get(tb.Context(), client.ObjectKeyFromObject(o), found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		tb.Fatalf("get %s: %v", title(o), err)
	}
	return found
}

// End deletes objects and waits until they are gone.
func (s *Server) End(tb testing.TB, objects ...*unstructured.Unstructured) {
	tb.Helper()
	for _, o := range objects {
		Eventually(tb, func() string { // replicas may hear late of what allows it
			if err := s.Delete(tb.Context(), o); client.IgnoreNotFound(err) != nil {
				return fmt.Sprintf("delete %s: %v", title(o), err)
			}
			return ""
		})
	}
	for _, o := range objects {
		Eventually(tb, func() string {
			if s.Lookup(tb, o) != nil {
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
