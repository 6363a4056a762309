package address

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// errSuperseded says that another pod has the name of an endpoint now, so that it is
// no more ours to write.
var errSuperseded = errors.New("another pod has this name now")

// write makes an endpoint say what it should, and returns what is there then.
// An endpoint that keeps its addresses is most likely there. What another pod
// left is overwritten only by a pod that begins just now, or is still there.
func (p *publisher) write(ctx context.Context, e *v2beta1.SpiderEndpoint, told version, keeps, fresh bool) (version, error) {
	if told.digest == digestOf(e) {
		return told, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	unsure := version{pod: types.UID(e.Status.Current.UID), isUnsure: true}
	if told.uid == "" && !keeps {
		made, err := p.client.createEndpoint(ctx, e)
		if err == nil {
			return versionOf(made), nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return unsure, err
		}
	}
	written, err := p.overwrite(ctx, e, fresh)
	if err != nil {
		return unsure, err
	}
	return versionOf(written), nil
}

// overwrite writes an endpoint that is there, as far as is known.
func (p *publisher) overwrite(ctx context.Context, e *v2beta1.SpiderEndpoint, fresh bool) (*v2beta1.SpiderEndpoint, error) {
	there, err := p.client.endpoint(ctx, e.Namespace, e.Name)
	switch {
	case apierrors.IsNotFound(err):
		return p.client.createEndpoint(ctx, e)
	case err != nil:
		return nil, err
	case there.DeletionTimestamp != nil:
		return nil, fmt.Errorf("an earlier one of its name is being deleted, which waits for its finalizers %q", there.Finalizers)
	case digestOf(there) == digestOf(e):
		return there, nil
	case there.Status.Current.Node != "" && there.Status.Current.Node != e.Status.Current.Node:
		return nil, fmt.Errorf("it is of node %s still, whose agent or the controller takes that out", there.Status.Current.Node)
	case there.Status.Current.UID != e.Status.Current.UID && !fresh:
		if err := p.client.checkPod(ctx, e); err != nil {
			return nil, err
		}
	}
	return p.client.updateEndpoint(ctx, merged(there, e))
}

// merged is an endpoint that says what ours does, and keeps what others wrote on
// it.
func merged(there, ours *v2beta1.SpiderEndpoint) *v2beta1.SpiderEndpoint {
	e := there.DeepCopy()
	e.Status, e.OwnerReferences = ours.Status, ours.OwnerReferences
	for _, key := range []string{v1alpha1.AnnotationSandbox, v1alpha1.AnnotationPod, v1alpha1.AnnotationIdentity} {
		delete(e.Annotations, key)
	}
	for key, value := range ours.Annotations {
		metav1.SetMetaDataAnnotation(&e.ObjectMeta, key, value)
	}
	for key, value := range ours.Labels {
		metav1.SetMetaDataLabel(&e.ObjectMeta, key, value)
	}
	return e
}

// remove deletes an endpoint that nobody wrote since we did, and returns what
// is known of it then. One that tells of another pod by now is left alone.
func (p *publisher) remove(ctx context.Context, name types.NamespacedName, told version) (version, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	if told.uid == "" && !told.isUnsure {
		return version{}, nil
	}
	if told.uid != "" {
		err := p.client.deleteEndpoint(ctx, name, told)
		if err == nil || apierrors.IsNotFound(err) {
			return version{}, nil
		}
		if !apierrors.IsConflict(err) {
			return told, err
		}
	}
	there, err := p.client.endpoint(ctx, name.Namespace, name.Name)
	switch {
	case apierrors.IsNotFound(err):
		return version{}, nil
	case err != nil:
		return told, err
	case types.UID(there.Status.Current.UID) != told.pod || there.DeletionTimestamp != nil:
		return version{}, nil
	}
	now := versionOf(there)
	if err := p.client.deleteEndpoint(ctx, name, now); err != nil && !apierrors.IsNotFound(err) {
		return now, err
	}
	return version{}, nil
}

// park takes the node out of an endpoint that outlives its pod, so that the agent
// of another node may write it. Which pod it tells of does not matter: what this
// node says of the identity, it says no more.
func (p *publisher) park(ctx context.Context, name types.NamespacedName, identity string) error {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	there, err := p.client.endpoint(ctx, name.Namespace, name.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case there.Status.Current.Node != p.client.node || there.Annotations[v1alpha1.AnnotationIdentity] != identity:
		return nil
	}
	there.Status.Current.Node = ""
	delete(there.Labels, v1alpha1.LabelNode)
	_, err = p.client.updateEndpoint(ctx, there)
	return err
}

const endpointResource = "spiderendpoints"

func (c *client) endpoint(ctx context.Context, namespace, name string) (*v2beta1.SpiderEndpoint, error) {
	there := &v2beta1.SpiderEndpoint{}
	err := c.endpoints.Get().Namespace(namespace).Resource(endpointResource).Name(name).Do(ctx).Into(there)
	return there, err
}

func (c *client) createEndpoint(ctx context.Context, e *v2beta1.SpiderEndpoint) (*v2beta1.SpiderEndpoint, error) {
	made := &v2beta1.SpiderEndpoint{}
	err := c.endpoints.Post().Namespace(e.Namespace).Resource(endpointResource).Body(e).Do(ctx).Into(made)
	return made, err
}

func (c *client) updateEndpoint(ctx context.Context, e *v2beta1.SpiderEndpoint) (*v2beta1.SpiderEndpoint, error) {
	written := &v2beta1.SpiderEndpoint{}
	err := c.endpoints.Put().Namespace(e.Namespace).Resource(endpointResource).Name(e.Name).Body(e).Do(ctx).Into(written)
	return written, err
}

// deleteEndpoint deletes a version of an endpoint, and a Conflict is the answer
// where that is not the present one.
func (c *client) deleteEndpoint(ctx context.Context, name types.NamespacedName, told version) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &told.uid, ResourceVersion: &told.resource}}
	return c.endpoints.Delete().Namespace(name.Namespace).Resource(endpointResource).Name(name.Name).Body(options).Do(ctx).Error()
}

// ownEndpoints returns the endpoints that agents of this node published, in
// pages.
func (c *client) ownEndpoints(ctx context.Context, each func(*v2beta1.SpiderEndpoint)) error {
	for next := ""; ; {
		list, err := c.endpointPage(ctx, next)
		if err != nil {
			return fmt.Errorf("SpiderEndpoints of node %s: %w", c.node, err)
		}
		for i := range list.Items {
			each(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// endpointPage is the page of our endpoints that an earlier one goes on with.
func (c *client) endpointPage(ctx context.Context, next string) (*v2beta1.SpiderEndpointList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	list := &v2beta1.SpiderEndpointList{}
	err := c.endpoints.Get().Resource(endpointResource).
		Param("labelSelector", v1alpha1.LabelNode+"="+nodeLabel(c.node)).
		Param("limit", "500").Param("continue", next).Do(ctx).Into(list)
	return list, err
}

// checkPod returns errSuperseded where the pod of an endpoint is there no more.
func (c *client) checkPod(ctx context.Context, e *v2beta1.SpiderEndpoint) error {
	name := e.Name
	if pod := e.Annotations[v1alpha1.AnnotationPod]; pod != "" {
		name = pod
	}
	pod, err := c.pods().Namespace(e.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != e.Status.Current.UID && pod.Annotations[mirror] != e.Status.Current.UID {
		return errSuperseded
	}
	return err
}
