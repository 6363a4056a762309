package kube

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// errUnknownKind is for kinds that the API server does not serve.
var errUnknownKind = errors.New("the API server does not serve this kind")

// kinds knows under which resources the API server serves kinds. It asks for
// one group and version when a kind of it is first needed, instead of for all
// there are, and again where a kind is missing, though not more often than
// every negativeFor. Only one goroutine uses it.
type kinds struct {
	resources rest.Interface
	known     map[string]groupVersion
}

// groupVersion is the kinds of an API version, such as batch/v1.
type groupVersion struct {
	kinds map[string]kind
	read  time.Time
}

// kind is how a kind is asked for.
type kind struct {
	resource schema.GroupVersionResource
	isGlobal bool // its objects are in no namespace
}

// versionsKept bounds how many API versions are remembered. The owner
// references of pods may name any.
const versionsKept = 256

// find returns how a kind is asked for; the error is errUnknownKind where the
// API server does not serve it.
func (k *kinds) find(ctx context.Context, apiVersion, name string) (kind, error) {
	version, ok := k.known[apiVersion]
	found, isServed := version.kinds[name]
	if isServed {
		return found, nil
	}
	if ok && time.Since(version.read) < negativeFor {
		return kind{}, errUnknownKind
	}
	served, err := k.read(ctx, apiVersion)
	if err != nil {
		return kind{}, err
	}
	if len(k.known) >= versionsKept || k.known == nil {
		k.known = map[string]groupVersion{}
	}
	k.known[apiVersion] = groupVersion{kinds: served, read: time.Now()}
	if found, isServed = served[name]; !isServed {
		return kind{}, errUnknownKind
	}
	return found, nil
}

// read asks for the kinds of an API version; there are none where it is not
// served.
func (k *kinds) read(ctx context.Context, apiVersion string) (map[string]kind, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || version.Version == "" {
		return nil, nil //nolint:nilerr // what has no such form is not served
	}
	path := []string{"/apis", version.Group, version.Version}
	if version.Group == "" {
		path = []string{"/api", version.Version}
	}
	var list metav1.APIResourceList
	err = k.resources.Get().AbsPath(path...).Do(ctx).Into(&list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	served := map[string]kind{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // no subresource, which may be of another kind
			served[r.Kind] = kind{resource: version.WithResource(r.Name), isGlobal: !r.Namespaced}
		}
	}
	return served, nil
}
