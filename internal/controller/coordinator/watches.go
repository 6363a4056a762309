package coordinator

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// watches begins to watch kinds of others once the cluster has them, and nodes
// once they matter.
type watches struct {
	controller controller.Controller
	mgr        ctrl.Manager
	handler    handler.EventHandler

	mu      sync.Mutex
	started map[schema.GroupVersionKind]bool
}

// names are the coordinators that an event is for: all of them.
type names func(context.Context) []reconcile.Request

func newWatches(c controller.Controller, mgr ctrl.Manager, all names) *watches {
	return &watches{controller: c, mgr: mgr, handler: later(all), started: map[schema.GroupVersionKind]bool{}}
}

// later asks for all coordinators, once for events that come together.
func later(all names) handler.EventHandler {
	enqueue := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range all(ctx) {
			queue.AddAfter(request, debounce)
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, _ event.CreateEvent, q queue) { enqueue(ctx, q) },
		UpdateFunc:  func(ctx context.Context, _ event.UpdateEvent, q queue) { enqueue(ctx, q) },
		DeleteFunc:  func(ctx context.Context, _ event.DeleteEvent, q queue) { enqueue(ctx, q) },
		GenericFunc: func(ctx context.Context, _ event.GenericEvent, q queue) { enqueue(ctx, q) },
	}
}

// kinds watches the kinds that the cluster has by now. Their metadata is enough
// to know that something changed.
func (w *watches) kinds() error {
	for _, versions := range [][]schema.GroupVersionKind{serviceCIDRKinds(), calicoKinds(), ciliumKinds()} {
		for _, kind := range versions {
			if _, err := w.mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
				continue // not there, or not to be known now: the next look comes
			}
			object := &metav1.PartialObjectMetadata{}
			object.SetGroupVersionKind(kind)
			if err := w.start(kind, object); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// nodes watches nodes for what is read of them.
func (w *watches) nodes() error {
	return w.start(corev1.SchemeGroupVersion.WithKind("Node"), &corev1.Node{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isNode := e.ObjectOld.(*corev1.Node)
		after, alsoNode := e.ObjectNew.(*corev1.Node)
		if !isNode || !alsoNode {
			return false
		}
		a, b := slimNode(before), slimNode(after)
		a.ResourceVersion = b.ResourceVersion
		return !equality.Semantic.DeepEqual(a, b)
	}})
}

func (w *watches) start(kind schema.GroupVersionKind, object client.Object, which ...predicate.Predicate) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started[kind] {
		return nil
	}
	if err := w.controller.Watch(source.Kind(w.mgr.GetCache(), object, w.handler, which...)); err != nil {
		return err
	}
	w.started[kind] = true
	return nil
}

// atStart asks once for a coordinator that may have to be created.
func atStart(name string) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if name != "" {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return nil
	})
}

// configMap tells of changes of one ConfigMap, whether it is there or not. It
// watches that one alone, as the role allows no other.
func configMap(clients kubernetes.Interface, name types.NamespacedName, all names) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		listed := toolscache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "configmaps", name.Namespace, fields.OneTermEqualSelector("metadata.name", name.Name))
		informer := toolscache.NewSharedIndexInformer(listed, &corev1.ConfigMap{}, 0, toolscache.Indexers{})
		tell := func(any) {
			for _, request := range all(ctx) {
				queue.AddAfter(request, debounce)
			}
		}
		// What may not be watched is looked up from time to time.
		if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {}); err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: tell, DeleteFunc: tell,
			UpdateFunc: func(before, after any) {
				if old, ok := before.(*corev1.ConfigMap); ok {
					if now, ok := after.(*corev1.ConfigMap); ok && old.ResourceVersion != now.ResourceVersion {
						tell(after)
					}
				}
			},
		}); err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
		return nil
	})
}
