package overview

import (
	"fmt"
	"io/fs"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// ReadError is why a resource could not be read. With errors.Is it is
// fs.ErrNotExist where the API server does not know it, and fs.ErrPermission
// where it may not be read.
type ReadError struct {
	Verb      string // "list" or "get"
	Resource  schema.GroupResource
	Namespace string // "" for all
	Err       error  // of the API server

	is      error
	meaning string // and what to do
}

// Error says what it means and what to do, or what the API server said.
func (e *ReadError) Error() string {
	if e.meaning == "" {
		return fmt.Sprintf("%s %s: %v", e.Verb, e.Resource, e.Err)
	}
	return fmt.Sprintf("%s %s: %s", e.Verb, e.Resource, e.meaning)
}

// Unwrap returns what the API server said.
func (e *ReadError) Unwrap() error { return e.Err }

// Is reports what the error is beside what the API server said.
func (e *ReadError) Is(target error) bool { return e.is != nil && e.is == target }

func readError(resource schema.GroupVersionResource, namespace string, err error) error {
	return readErrorOf("list", resource, namespace, err)
}

func readErrorOf(verb string, resource schema.GroupVersionResource, namespace string, err error) error {
	e := &ReadError{Verb: verb, Resource: resource.GroupResource(), Namespace: namespace, Err: err}
	if isOfCluster[resource] {
		e.Namespace = ""
	}
	switch {
	case apierrors.IsNotFound(err):
		e.is, e.meaning = fs.ErrNotExist, "the API server does not know them"+remedy(resource.Group)
	case apierrors.IsForbidden(err):
		where := "all namespaces"
		if e.Namespace != "" {
			where = "namespace " + e.Namespace
		}
		if isOfCluster[resource] {
			where = "the cluster"
		}
		e.is = fs.ErrPermission
		e.meaning = fmt.Sprintf("forbidden: want a role with the verb %s on %s in %s", verb, e.Resource, where)
	case apierrors.IsUnauthorized(err):
		e.is, e.meaning = fs.ErrPermission, "the API server does not know who asks: want valid credentials in the kubeconfig"
	}
	return e
}

// remedy says what brings the kinds of a group.
func remedy(group string) string {
	switch group {
	case v2beta1.GroupVersion.Group, v1alpha1.GroupVersion.Group:
		return ": install the CRDs of Railhead (kubectl apply -f charts/railhead/crds), or look at another cluster with --context"
	case cniv1.GroupVersion.Group:
		return ": install the CRDs of Railhead (kubectl apply -f charts/railhead/crds) or Multus, or look at another cluster with --context"
	}
	return ""
}
