package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// namespaceFresh is for how long a namespace that was read is not read again
	// for the next pod: those of a job come together.
	namespaceFresh = 5 * time.Second

	// namespaceOld is after how long a namespace is read again when it is asked for.
	namespaceOld = time.Minute
)

// namespaces are those that pods of this node are in. There is no watch of
// namespaces: a cluster has thousands, each node needs a handful, and a thousand
// nodes would hear of every change of each.
type namespaces struct {
	mu    sync.RWMutex
	known map[string]namespace
}

// namespace is one, as it was at some time.
type namespace struct {
	meta *metav1.ObjectMeta
	at   time.Time
}

func (n *namespaces) get(name string) (namespace, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	known, ok := n.known[name]
	return known, ok
}

// set takes a namespace, and tells whether it is other than it was.
func (n *namespaces) set(name string, now namespace) (isNews bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, ok := n.known[name]
	n.known[name] = now
	return !ok || !isSame(before.meta, now.meta)
}

// recall takes a namespace as an earlier run read it, unless it is known better.
func (n *namespaces) recall(meta *metav1.ObjectMeta) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.known[meta.Name]; !ok {
		meta.Labels, meta.Annotations = known(meta.Labels), known(meta.Annotations)
		n.known[meta.Name] = namespace{meta: meta}
	}
}

// all are those that are known.
func (n *namespaces) all() []namespace {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Collect(maps.Values(n.known))
}

func (n *namespaces) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, name)
}

// retain forgets namespaces without pods.
func (n *namespaces) retain(used map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.known, func(name string, _ namespace) bool { return !used[name] })
}

// Namespace returns the metadata of a namespace, its names, labels and
// annotations. It is read whenever a pod of the namespace comes to the node, and
// so is as new as the newest pod, or five seconds older; one that is not known is
// asked for. The error is apierrors.IsNotFound where there is none.
func (c *Cache) Namespace(ctx context.Context, name string) (*metav1.ObjectMeta, error) {
	known, ok := c.namespaces.get(name)
	if !ok {
		return c.readNamespace(ctx, name, 0)
	}
	if time.Since(known.at) > namespaceOld {
		c.queue.Add(errand{namespace: name}) // for who asks next
	}
	return known.meta, nil
}

// readNamespace asks for a namespace, unless it was read within some time.
func (c *Cache) readNamespace(ctx context.Context, name string, fresh time.Duration) (*metav1.ObjectMeta, error) {
	if known, ok := c.namespaces.get(name); ok && time.Since(known.at) < fresh {
		return known.meta, nil
	}
	at := time.Now()
	found, err := c.client.get(ctx, coreVersion().WithResource("namespaces"), "", name)
	switch {
	case apierrors.IsNotFound(err):
		c.namespaces.forget(name)
		return nil, &absence{fmt.Sprintf("namespace %s is gone: the API server has none of this name", name), err}
	case err != nil:
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	kept := &metav1.ObjectMeta{
		Name: found.Name, UID: found.UID, ResourceVersion: found.ResourceVersion,
		Labels: known(found.Labels), Annotations: known(found.Annotations),
	}
	delete(kept.Annotations, lastApplied)
	if c.namespaces.set(name, namespace{meta: kept, at: at}) {
		c.disk.note()
	}
	return kept, nil
}

// known is what was read: nil would say that it was not.
func known(read map[string]string) map[string]string {
	if read == nil {
		return map[string]string{}
	}
	return read
}
