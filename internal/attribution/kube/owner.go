package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// owner is what is known of an object that owns pods, or other owners.
type owner struct {
	controller *metav1.OwnerReference // what owns it; nil at the top and where that cannot be known
	reason     string                 // why it cannot be known; empty where it is
	until      time.Time              // when it is asked for again, where it cannot be known
	isGlobal   bool                   // it is in no namespace
	pods       int                    // how many pods it is known for
}

// Reasons why a walk over owners ends before the top.
const (
	pending     = "Pending"     // owners were not read yet
	forbidden   = "Forbidden"   // our rights do not reach to the owner
	notFound    = "NotFound"    // the owner is gone
	replaced    = "Replaced"    // another object has the owner's name
	unknownKind = "UnknownKind" // the API server does not serve the owner's kind
	cyclic      = "Cycle"       // the owner is owned by itself, over others or not
	tooDeep     = "TooDeep"     // there are more owners than any controller makes
	unavailable = "Unavailable" // the API server did not answer
)

// negativeFor is how long it is believed that an owner cannot be known.
const negativeFor = 5 * time.Minute

// getTimeout bounds a question to the API server.
const getTimeout = 10 * time.Second

// reader asks the API server for owners. Only one goroutine uses it.
type reader struct {
	objects metadata.Interface
	kinds   kinds
}

// read asks for the owner that ref names, of an object in a namespace. An error
// is a passing one; what cannot be known is told by the owner.
func (r *reader) read(ctx context.Context, namespace string, ref *metav1.OwnerReference) (*owner, error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	kind, err := r.kinds.find(ctx, ref.APIVersion, ref.Kind)
	var object *metav1.PartialObjectMetadata
	if err == nil {
		object, err = r.get(ctx, kind, namespace, ref.Name)
	}
	o := &owner{isGlobal: kind.isGlobal, until: time.Now().Add(negativeFor)}
	switch {
	case err == nil && object.UID != ref.UID:
		o.reason = replaced
	case err == nil:
		o.controller, o.until = metav1.GetControllerOf(object), time.Time{}
	case apierrors.IsForbidden(err):
		o.reason = forbidden
	case apierrors.IsNotFound(err):
		o.reason = notFound
	case errors.Is(err, errUnknownKind):
		o.reason = unknownKind
	default:
		return nil, fmt.Errorf("owner %s %s of namespace %s: %w", ref.Kind, ref.Name, namespace, err)
	}
	return o, nil
}

func (r *reader) get(ctx context.Context, k kind, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	if k.isGlobal {
		return r.objects.Resource(k.resource).Get(ctx, name, metav1.GetOptions{})
	}
	return r.objects.Resource(k.resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}
