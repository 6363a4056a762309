package overview

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// ErrUnreachable is that the API server does not answer, or cannot be trusted:
// to ask it for more is of no use.
var ErrUnreachable = errors.New("the API server cannot be reached")

// ReadError is why a resource could not be read. With errors.Is it is
// fs.ErrNotExist where the API server does not know it, fs.ErrPermission where
// it may not be read, and ErrUnreachable where nobody answered.
type ReadError struct {
	Server    string // URL of the API server
	Verb      string // "list" or "get"
	Resource  schema.GroupResource
	Namespace string // "" for all
	Err       error  // of the API server, or why there was none

	is      error
	meaning string // and what to do
	remedy  string // where the API server does not know the resource
}

// Error says what it means and what to do, or what the API server said.
func (e *ReadError) Error() string {
	if e.meaning == "" {
		return fmt.Sprintf("%s %s: the API server %s answers: %v", e.Verb, e.Resource, e.Server, e.Err)
	}
	return e.meaning
}

// Unwrap returns what the API server said.
func (e *ReadError) Unwrap() error { return e.Err }

// Is reports what the error is beside what the API server said.
func (e *ReadError) Is(target error) bool { return e.is != nil && e.is == target }

// readError says what it means that a resource could not be read.
func (r *Reader) readError(verb string, resource schema.GroupVersionResource, namespace string, err error) error {
	e := &ReadError{Server: r.server, Verb: verb, Resource: resource.GroupResource(), Namespace: namespace, Err: err}
	if isOfCluster[resource] {
		e.Namespace = ""
	}
	switch text, isUnreachable := r.unreachable(err); {
	case isUnreachable:
		e.is, e.meaning = ErrUnreachable, text
	case apierrors.IsNotFound(err):
		e.is, e.remedy = fs.ErrNotExist, remedyOf(resource.Group)
		e.meaning = fmt.Sprintf("the API server %s does not know %s%s", r.server, e.Resource, e.remedy)
	case apierrors.IsForbidden(err):
		e.is, e.meaning = fs.ErrPermission, e.forbidden(isOfCluster[resource])
	case apierrors.IsUnauthorized(err):
		e.is = fs.ErrPermission
		e.meaning = fmt.Sprintf("the API server %s does not know who asks: want valid credentials in the kubeconfig", r.server)
	}
	return e
}

// unreachable says why there is no answer, if there is none.
func (r *Reader) unreachable(err error) (string, bool) {
	const other = ", or another cluster with --kubeconfig or --context"
	var (
		asked   *url.Error
		noTrust *tls.CertificateVerificationError
	)
	switch {
	case !errors.As(err, &asked):
		return "", false
	case errors.As(err, &noTrust):
		return fmt.Sprintf("the API server %s cannot be trusted: %v; want its certificate-authority-data in the kubeconfig%s", r.server, noTrust.Err, other), true
	case strings.HasPrefix(asked.Err.Error(), "getting credentials"): // by a program that the kubeconfig names
		why, _, _ := strings.Cut(asked.Err.Error(), "\n") // and a page of advice
		return fmt.Sprintf("the API server %s was not asked: %s; want a user in the kubeconfig whose credentials can be had%s", r.server, why, other), true
	}
	return fmt.Sprintf("the API server %s does not answer: %v; want it running and reachable from here%s", r.server, asked.Err, other), true
}

// forbidden says which right is missing.
func (e *ReadError) forbidden(isOfCluster bool) string {
	where := "all namespaces"
	switch {
	case isOfCluster:
		where = "the cluster"
	case e.Namespace != "":
		where = "namespace " + e.Namespace
	}
	return fmt.Sprintf("%s %s: forbidden: want a role with the verb %s on %s in %s", e.Verb, e.Resource, e.Verb, e.Resource, where)
}

// remedyOf says what brings the kinds of a group.
func remedyOf(group string) string {
	switch group {
	case v2beta1.GroupVersion.Group, v1alpha1.GroupVersion.Group:
		return ": install the CRDs of Railhead (kubectl apply --server-side -f charts/railhead/crds), or look at another cluster with --context"
	case cniv1.GroupVersion.Group:
		return ": install the CRDs of Railhead (kubectl apply --server-side -f charts/railhead/crds) or Multus, or look at another cluster with --context"
	}
	return ""
}

// Brief has one error for all kinds that an API server does not know, and each
// text once, in order.
func Brief(problems []error) []error {
	resources := map[string][]string{} // by remedy
	for _, p := range problems {
		if e, ok := unknown(p); ok {
			resources[e.remedy] = append(resources[e.remedy], e.Resource.String())
		}
	}
	var list []error
	seen := map[string]bool{}
	for _, p := range problems {
		if e, ok := unknown(p); ok {
			all := *e
			all.meaning = fmt.Sprintf("the API server %s does not know %s%s", e.Server, strings.Join(resources[e.remedy], ", "), e.remedy)
			p = &all
		}
		if !seen[p.Error()] {
			list, seen[p.Error()] = append(list, p), true
		}
	}
	return list
}

// unknown is an error that says of a kind that the API server does not know it,
// and no more.
func unknown(err error) (*ReadError, bool) {
	var e *ReadError
	return e, errors.As(err, &e) && errors.Is(e.is, fs.ErrNotExist) && e.Error() == err.Error()
}
