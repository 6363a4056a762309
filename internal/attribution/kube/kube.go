// Package kube knows the pods of this node and the workloads they belong to,
// as the API server tells them.
//
// It reads metadata only, never specifications, statuses or secrets, and works
// in the background: questions are answered at once from what is known.
package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"railhead/internal/attribution"
	"railhead/internal/listwatch"
)

// Source knows the pods of a node. It implements [attribution.PodSource] and is
// safe for concurrent use.
//
// It needs the right to list and watch pods, and to get whatever may own a pod:
// a workload is told as far up as the rights reach. While the API server is
// away, what is known stays true.
type Source struct {
	log      *slog.Logger
	link     link
	informer cache.SharedIndexInformer
	reader   reader
	queue    workqueue.TypedRateLimitingInterface[types.UID] // of pods whose workload is to be found, or that are to be forgotten

	mu     sync.RWMutex
	pods   map[string]*record // by UID, and by hash for static pods
	names  map[types.NamespacedName]*record
	owners map[types.UID]*owner

	synced cache.InformerSynced
}

// rate is how many questions a second the API server is asked where the
// configuration does not say, and how many at once: a node that starts has a
// hundred pods, each perhaps with owners of its own.
const (
	rate  = 20
	burst = 50
)

// New returns a Source of the pods on a node. It asks nothing before Run. The
// error is about config.
func New(config *rest.Config, node string, log *slog.Logger) (*Source, error) {
	if node == "" {
		return nil, errors.New("name of the node is empty, want that of its Node object")
	}
	if config.QPS == 0 && config.RateLimiter == nil {
		config = rest.CopyConfig(config)
		config.QPS, config.Burst = rate, burst
	}
	objects, resources, err := clients(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	s := &Source{
		log:    log,
		link:   link{log: log},
		reader: reader{objects: objects, kinds: kinds{resources: resources}},
		pods:   map[string]*record{},
		names:  map[types.NamespacedName]*record{},
		owners: map[types.UID]*owner{},
	}
	if s.informer, err = s.newInformer(objects, node); err != nil {
		return nil, err
	}
	return s, nil
}

// newInformer returns the informer that calls set and remove. What it asks ends
// with the context that it runs in.
func (s *Source) newInformer(objects metadata.Interface, node string) (cache.SharedIndexInformer, error) {
	pods := objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	onNode := fields.OneTermEqualSelector("spec.nodeName", node).String()
	asked := listwatch.Questions{
		List: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = onNode
			return pods.List(ctx, options)
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = onNode
			return pods.Watch(ctx, options)
		},
		Note: s.link.note,
	}
	informer := cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(asked.ListWatch(), objects), &metav1.PartialObjectMetadata{}, 0, nil)
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.set,
		UpdateFunc: func(_, now any) { s.set(now) },
		DeleteFunc: s.remove,
	})
	if err != nil {
		return nil, err
	}
	s.synced = handler.HasSynced
	known := func(context.Context, *cache.Reflector, error) {} // the link has told it
	return informer, errors.Join(informer.SetTransform(trim), informer.SetWatchErrorHandlerWithContext(known))
}

// Run keeps the pods up to date until ctx ends, and returns its error. It runs
// once.
func (s *Source) Run(ctx context.Context) error {
	s.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](time.Second, 5*time.Minute))
	var wg sync.WaitGroup
	wg.Go(func() { s.informer.RunWithContext(klog.NewContext(ctx, clientLogger(s.log))) })
	wg.Go(func() { s.work(ctx) })
	<-ctx.Done()
	s.queue.ShutDown()
	wg.Wait()
	return ctx.Err()
}

// Pod returns a pod by its UID, or by the hash that the kubelet has for the UID
// of a static pod; nil where it is not known.
func (s *Source) Pod(uid string) *attribution.Pod {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.pods[uid].known()
}

// PodByName returns the newest pod of a name; nil where none is known.
func (s *Source) PodByName(namespace, name string) *attribution.Pod {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names[types.NamespacedName{Namespace: namespace, Name: name}].known()
}

// Synced tells whether all pods are known that there were when Run began, and
// whether the workload of every pod was looked for. One that could not be read
// may be found later.
func (s *Source) Synced() bool {
	if !s.synced() {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.pods {
		if r.pod.Workload.Reason == pending {
			return false
		}
	}
	return true
}

// Err returns why pods are not told of now, which is that the API server cannot be
// reached, does not answer or does not let us; nil while they are. What is known
// stays as it was.
func (s *Source) Err() error { return s.link.failure() }
