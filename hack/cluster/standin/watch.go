package standin

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watch follows all pods that are bound to a node, by one list and one watch whatever the number of nodes, until the
// context ends.
func (f *fleet) watch(ctx context.Context) error {
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	pods := f.client.CoreV1().Pods(meta.NamespaceAll)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
			o.FieldSelector = bound
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o meta.ListOptions) (apiwatch.Interface, error) {
			o.FieldSelector = bound
			return pods.Watch(ctx, o)
		},
	}
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, f.client), &core.Pod{}, &follower{ctx, f}, cache.ReflectorOptions{Name: "pods of stand-ins"})
	reflector.RunWithContext(ctx)
	return nil
}

// follower is where a reflector puts pods: none is kept as it comes. Its methods are called one at a time.
type follower struct {
	ctx   context.Context
	fleet *fleet
}

// Add follows a pod that is new or was not seen for a while.
func (w *follower) Add(o any) error { return w.Update(o) }

// Update follows a change.
func (w *follower) Update(o any) error {
	p, ok := o.(*core.Pod)
	if !ok {
		return fmt.Errorf("a %T instead of a pod", o)
	}
	w.fleet.follow(w.ctx, p)
	return nil
}

// Delete follows the end of a pod's object.
func (w *follower) Delete(o any) error {
	p, ok := o.(*core.Pod)
	if !ok {
		return fmt.Errorf("a %T instead of a pod", o)
	}
	w.fleet.vanished(p.UID)
	return nil
}

// Replace follows a whole list: what is not in it is gone.
func (w *follower) Replace(all []any, _ string) error {
	there := map[any]bool{}
	for _, o := range all {
		if err := w.Update(o); err != nil {
			return err
		}
		there[o.(*core.Pod).UID] = true
	}
	for _, uid := range w.fleet.followed() {
		if !there[uid] {
			w.fleet.vanished(uid)
		}
	}
	return nil
}

// Resync is never asked for.
func (*follower) Resync() error { return nil }
