package controller

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/webhook"
)

// feed passes what informers see to the Catalog and the settings first, and
// then to controllers: a controller that hears of a change finds it there.
type feed struct {
	kinds []*fed
}

// fed is one kind.
type fed struct {
	kind        client.Object
	put, remove func(client.Object)

	mu        sync.Mutex
	objects   map[client.ObjectKey]client.Object // what has been passed on
	followers []follower
}

// follower is a controller that hears of a kind.
type follower struct {
	ctx     context.Context //nolint:containedctx // a source's queue lives as long as the context it came with
	handler handler.EventHandler
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newFeed(catalog *policy.Catalog, s *settings, n *webhook.Namespaces) *feed {
	put := func(o client.Object) { catalog.Put(o) }
	remove := func(o client.Object) { catalog.Remove(o) }
	f := &feed{}
	for _, kind := range []client.Object{
		&v2beta1.SpiderCoordinator{}, &v2beta1.SpiderEndpoint{}, &v2beta1.SpiderIPPool{}, &v2beta1.SpiderMultusConfig{},
		&v2beta1.SpiderReservedIP{}, &v2beta1.SpiderSubnet{}, &cniv1.NetworkAttachmentDefinition{}, &v1alpha1.PoolLedger{},
	} {
		f.add(kind, put, remove)
	}
	pass := func(client.Object) {} // to controllers alone
	f.add(&v1alpha1.AddressLease{}, pass, pass)
	f.add(&corev1.Node{}, pass, pass)
	f.add(&corev1.ConfigMap{}, s.put, s.remove)
	f.add(namespaceMetadata(),
		func(o client.Object) { n.Put(o) },
		func(o client.Object) { n.Remove(o.GetName()) })
	return f
}

func (f *feed) add(kind client.Object, put, remove func(client.Object)) {
	f.kinds = append(f.kinds, &fed{kind: kind, put: put, remove: remove, objects: map[client.ObjectKey]client.Object{}})
}

// namespaceMetadata is what is read of namespaces.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// informer is what a kind is heard of from.
type informer interface {
	AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}

// start follows all kinds and returns once what there is has been passed on.
func (f *feed) start(ctx context.Context, objects cache.Cache, configMaps []toolscache.SharedIndexInformer) error {
	var synced []toolscache.InformerSynced
	for _, k := range f.kinds {
		informers, err := k.informers(ctx, objects, configMaps)
		if err != nil {
			return fmt.Errorf("watch %T: %w", k.kind, err)
		}
		for _, i := range informers {
			registration, err := i.AddEventHandler(k)
			if err != nil {
				return fmt.Errorf("watch %T: %w", k.kind, err)
			}
			synced = append(synced, registration.HasSynced)
		}
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	return nil
}

// informers are the cache's, but for ConfigMaps, of which ours alone are read.
func (k *fed) informers(ctx context.Context, objects cache.Cache, configMaps []toolscache.SharedIndexInformer) (list []informer, err error) {
	if _, ok := k.kind.(*corev1.ConfigMap); ok {
		for _, i := range configMaps {
			list = append(list, i)
		}
		return list, nil
	}
	i, err := objects.GetInformer(ctx, k.kind, cache.BlockUntilSynced(false))
	return []informer{i}, err
}

// watch is a source of a controller: of the same kind of events as source.Kind,
// each after the Catalog has it. A kind that is not read is the source's error.
func (f *feed) watch(kind client.Object, h handler.EventHandler) source.Source {
	return fedSource{f, kind, h}
}

type fedSource struct {
	feed    *feed
	kind    client.Object
	handler handler.EventHandler
}

// Start implements source.Source.
func (s fedSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	k := s.feed.of(s.kind)
	if k == nil {
		return fmt.Errorf("objects of type %T are not read", s.kind)
	}
	k.follow(follower{ctx, s.handler, queue})
	return nil
}

// String is what the log calls it.
func (s fedSource) String() string { return fmt.Sprintf("feed of %T", s.kind) }

// of finds a kind, nil if it is not read.
func (f *feed) of(kind client.Object) *fed {
	for _, k := range f.kinds {
		if reflect.TypeOf(k.kind) == reflect.TypeOf(kind) {
			return k
		}
	}
	return nil
}

// count is how many objects of a kind there are.
func (f *feed) count(kind client.Object) int {
	k := f.of(kind)
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.objects)
}

// follow passes on what there is, and from then on what changes.
func (k *fed) follow(f follower) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, object := range k.objects {
		f.handler.Create(f.ctx, event.CreateEvent{Object: object, IsInInitialList: true}, f.queue)
	}
	k.followers = append(k.followers, f)
}

// each calls tell for each controller that still runs.
func (k *fed) each(tell func(follower)) {
	for _, f := range k.followers {
		if f.ctx.Err() == nil {
			tell(f)
		}
	}
}

// OnAdd implements the informer's handler.
func (k *fed) OnAdd(added any, initial bool) {
	object, ok := added.(client.Object)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(object)
	k.objects[client.ObjectKeyFromObject(object)] = object
	k.each(func(f follower) {
		f.handler.Create(f.ctx, event.CreateEvent{Object: object, IsInInitialList: initial}, f.queue)
	})
}

// OnUpdate implements the informer's handler.
func (k *fed) OnUpdate(before, after any) {
	old, ok := before.(client.Object)
	object, alsoOK := after.(client.Object)
	if !ok || !alsoOK {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(object)
	k.objects[client.ObjectKeyFromObject(object)] = object
	k.each(func(f follower) {
		f.handler.Update(f.ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: object}, f.queue)
	})
}

// OnDelete implements the informer's handler.
func (k *fed) OnDelete(deleted any) {
	unseen, ok := deleted.(toolscache.DeletedFinalStateUnknown)
	if ok {
		deleted = unseen.Obj
	}
	object, isObject := deleted.(client.Object)
	if !isObject {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(object)
	delete(k.objects, client.ObjectKeyFromObject(object))
	k.each(func(f follower) {
		f.handler.Delete(f.ctx, event.DeleteEvent{Object: object, DeleteStateUnknown: ok}, f.queue)
	})
}
