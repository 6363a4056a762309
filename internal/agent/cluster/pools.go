package cluster

import (
	"context"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"railhead/api/spiderpool/v2beta1"
)

// pools are how SpiderIPPools are asked for: whole to begin with, and from then on
// their metadata alone, and whole again only where that says that more changed than
// the status. While pods start, each pool's status is written every second, and may
// name a thousand of them: a thousand nodes would be sent all of it.
type pools struct {
	whole, metadata questions
	get             func(ctx context.Context, name, version string) (*v2beta1.SpiderIPPool, error)

	mu   sync.Mutex
	seen map[string]seen
}

// seen is in which state a pool was read.
type seen struct {
	uid        types.UID
	generation int64 // which a change of the status leaves
	isEnding   bool
	labels     map[string]string
}

func seenOf(o metav1.Object) seen {
	return seen{o.GetUID(), o.GetGeneration(), o.GetDeletionTimestamp() != nil, ownerLabels(o.GetLabels())}
}

// note keeps in which state a pool was read; nil is that it is gone.
func (p *pools) note(name string, o metav1.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o == nil {
		delete(p.seen, name)
	} else {
		p.seen[name] = seenOf(o)
	}
}

// knows tells whether nothing but the status changed.
func (p *pools) knows(o metav1.Object) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.seen[o.GetName()]
	now := seenOf(o)
	return ok && now.generation != 0 && s.generation == now.generation && s.uid == now.uid && s.isEnding == now.isEnding && maps.Equal(s.labels, now.labels)
}

// watch asks to be told of pools.
func (p *pools) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	isWhole := options.SendInitialEvents != nil && *options.SendInitialEvents
	asked := p.metadata
	if isWhole {
		asked = p.whole
	}
	ctx, cancel := context.WithCancel(ctx)
	first, err := asked.watch(ctx, options)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &poolWatch{pools: p, cancel: cancel, events: make(chan watch.Event), options: options}
	go func() {
		defer close(w.events)
		defer cancel()
		w.run(ctx, first, isWhole)
	}()
	return w, nil
}

// poolWatch tells of pools for a while.
type poolWatch struct {
	pools   *pools
	cancel  context.CancelFunc
	events  chan watch.Event
	options metav1.ListOptions
}

// Stop ends the watch.
func (w *poolWatch) Stop() { w.cancel() }

// ResultChan returns what is told.
func (w *poolWatch) ResultChan() <-chan watch.Event { return w.events }

// send passes an event on, and tells whether more may follow.
func (w *poolWatch) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.events <- event:
		return event.Type != watch.Error
	case <-ctx.Done():
		return false
	}
}

// run passes on what there is, if that is asked for, and then what changes.
func (w *poolWatch) run(ctx context.Context, first watch.Interface, isWhole bool) {
	if isWhole {
		version := w.begin(ctx, first)
		first.Stop()
		if version == "" {
			return
		}
		options := w.options
		options.SendInitialEvents, options.ResourceVersionMatch, options.ResourceVersion = nil, "", version
		var err error
		if first, err = w.pools.metadata.watch(ctx, options); err != nil {
			w.send(ctx, failure(err))
			return
		}
	}
	defer first.Stop()
	for event := range first.ResultChan() {
		if !w.send(ctx, w.pools.complete(ctx, event)) {
			return
		}
	}
}

// begin passes on what there is, and returns the version that this is of; empty
// where it did not come to its end.
func (w *poolWatch) begin(ctx context.Context, whole watch.Interface) string {
	for event := range whole.ResultChan() {
		if !w.send(ctx, event) {
			return ""
		}
		o, ok := event.Object.(metav1.Object)
		if ok && event.Type == watch.Bookmark && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			return o.GetResourceVersion()
		}
	}
	return ""
}

// complete is an event about metadata as one about a pool. One without news is
// where the watch has come to, and has the event's version: the pool may be newer,
// and others not.
func (p *pools) complete(ctx context.Context, event watch.Event) watch.Event {
	o, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return event // an error
	}
	bare := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: o.Name, ResourceVersion: o.ResourceVersion, Annotations: o.Annotations}}
	switch {
	case event.Type != watch.Added && event.Type != watch.Modified:
		return watch.Event{Type: event.Type, Object: bare}
	case p.knows(o):
		return watch.Event{Type: watch.Bookmark, Object: &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{ResourceVersion: o.ResourceVersion}}}
	}
	pool, err := p.get(ctx, o.Name, o.ResourceVersion)
	switch {
	case apierrors.IsNotFound(err):
		return watch.Event{Type: watch.Deleted, Object: bare}
	case err != nil:
		return failure(err)
	}
	pool.ResourceVersion = o.ResourceVersion
	return watch.Event{Type: event.Type, Object: pool}
}

// failure is an error as an event.
func failure(err error) watch.Event {
	status := apierrors.NewInternalError(err).Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// getPool reads a pool that is not older than a version, of the API server's memory.
func (c *client) getPool(ctx context.Context, name, version string) (*v2beta1.SpiderIPPool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	pool := &v2beta1.SpiderIPPool{}
	err := c.spider.Get().Resource(poolResource().Resource).Name(name).Param("resourceVersion", version).Do(ctx).Into(pool)
	return pool, err
}

// passPool gives the Catalog a pool.
func (c *Cache) passPool(_, now metav1.Object) {
	c.catalog.Put(now)
	c.pools.note(now.GetName(), now)
	namespace := ""
	if pool, ok := c.catalog.Pool(now.GetName()); ok && pool.Owner != nil {
		namespace = pool.Owner.Namespace
	}
	c.owned.set(now.GetName(), namespace)
}

// passPoolGone has the Catalog forget a pool.
func (c *Cache) passPoolGone(key types.NamespacedName, _ metav1.Object) {
	c.catalog.Remove(&v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: key.Name}})
	c.pools.note(key.Name, nil)
	c.owned.set(key.Name, "")
}

// trimPool leaves a pool what it says, and of its labels whose own it is.
func trimPool(o metav1.Object) {
	if pool, ok := o.(*v2beta1.SpiderIPPool); ok {
		pool.Status = v2beta1.IPPoolStatus{}
		pool.ObjectMeta = metav1.ObjectMeta{
			Name: pool.Name, UID: pool.UID, ResourceVersion: pool.ResourceVersion, Generation: pool.Generation,
			CreationTimestamp: pool.CreationTimestamp, DeletionTimestamp: pool.DeletionTimestamp, Labels: ownerLabels(pool.Labels),
		}
	}
}

// ownerLabels are the labels that say whose own a pool is; nil where none does.
func ownerLabels(labels map[string]string) (kept map[string]string) {
	for _, key := range []string{
		v2beta1.LabelOwnerGroupVersion, v2beta1.LabelOwnerKind, v2beta1.LabelOwnerNamespace, v2beta1.LabelOwnerName,
		v2beta1.LabelOwnerUID, v2beta1.LabelInterface,
	} {
		if value, ok := labels[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// poolAgain makes a pool of what the Catalog has of it; nil where that has none.
func (c *Cache) poolAgain(name string) metav1.Object {
	pool, ok := c.catalog.Pool(name)
	if !ok {
		return nil
	}
	return poolMeaning(pool, c.pools.labels(name))
}

// labels are those that say whose own a pool is.
func (p *pools) labels(name string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[name].labels
}
