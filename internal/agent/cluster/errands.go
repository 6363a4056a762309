package cluster

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errand is something to read before somebody asks for it: what a pod needs that
// came to the node, or a namespace that was read a while ago.
type errand struct {
	pod       types.NamespacedName
	namespace string
}

// runErrands reads until the queue shuts down.
func (c *Cache) runErrands(ctx context.Context) {
	for {
		e, isShutDown := c.queue.Get()
		if isShutDown {
			return
		}
		if err := c.run(ctx, e); err != nil {
			c.log.Debug("what pods need cannot be read now", "namespace", cmp.Or(e.namespace, e.pod.Namespace), "pod_name", e.pod.Name, "error", err)
			c.queue.AddRateLimited(e)
		} else {
			c.queue.Forget(e)
		}
		c.queue.Done(e)
	}
}

func (c *Cache) run(ctx context.Context, e errand) error {
	if e.namespace != "" {
		return unlessAbsent(c.readNamespace(ctx, e.namespace, namespaceFresh))
	}
	pod, ok := c.pods.get(e.pod.Namespace, e.pod.Name).(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	if err := unlessAbsent(c.readNamespace(ctx, pod.Namespace, namespaceFresh)); err != nil {
		return err
	}
	_, err := c.Above(ctx, pod)
	return err
}

// unlessAbsent is an error that may be none the next time.
func unlessAbsent(_ *metav1.ObjectMeta, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
