package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// mirror is what there is of a kind, as a reflector tells it. Objects that others
// keep, it knows by name alone. It implements [cache.TransformingStore].
type mirror struct {
	trim func(metav1.Object)                       // drops in place what nobody needs
	put  func(before, now metav1.Object)           // hears what came or changed; before is nil where it is new, or not kept
	drop func(types.NamespacedName, metav1.Object) // hears what is gone; the object is nil where it is not kept
	keep bool                                      // false: others do
	news func()                                    // hears that something is other than what the disk was given; nil: nobody keeps it there

	filling sync.Mutex // held while it is given all that there is or was

	mu         sync.RWMutex
	objects    map[types.NamespacedName]metav1.Object
	isRead     bool // of the API server
	isRecalled bool // of the disk
}

// Add takes an object that came.
func (m *mirror) Add(object any) error { return m.set(object) }

// Update takes an object that changed.
func (m *mirror) Update(object any) error { return m.set(object) }

// Delete takes that an object is gone.
func (m *mirror) Delete(object any) error {
	o, err := objectOf(object)
	if err != nil {
		return err
	}
	m.forget(keyOf(o))
	return nil
}

// Replace takes all that there is.
func (m *mirror) Replace(list []any, _ string) error {
	m.filling.Lock()
	defer m.filling.Unlock()
	there := map[types.NamespacedName]bool{}
	for i, object := range list {
		o, err := objectOf(object)
		if err != nil {
			return err
		}
		there[keyOf(o)] = true
		if err := m.set(o); err != nil {
			return err
		}
		list[i] = nil // what is not kept is free from here on
	}
	m.mu.RLock()
	known := slices.Collect(maps.Keys(m.objects))
	m.mu.RUnlock()
	for _, key := range known {
		if !there[key] {
			m.forget(key)
		}
	}
	m.mu.Lock()
	m.isRead = true
	m.mu.Unlock()
	m.tell()
	return nil
}

// recall takes an object that there was before this run, unless what there is has
// been read.
func (m *mirror) recall(o metav1.Object) {
	m.filling.Lock()
	defer m.filling.Unlock()
	if !m.current() {
		m.trim(o)
		m.take(o)
	}
}

// recalled takes it that those were all.
func (m *mirror) recalled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isRecalled = !m.isRead
}

// Resync has nothing to do.
func (m *mirror) Resync() error { return nil }

// Transformer trims what the reflector collects.
func (m *mirror) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if o, ok := object.(metav1.Object); ok {
			m.trim(o)
		}
		return object, nil
	}
}

func (m *mirror) set(object any) error {
	o, err := objectOf(object)
	if err != nil {
		return err
	}
	m.trim(o)
	isNews := !isSame(m.get(o.GetNamespace(), o.GetName()), o)
	m.take(o)
	if isNews {
		m.tell()
	}
	return nil
}

// take takes a trimmed object.
func (m *mirror) take(o metav1.Object) {
	key := keyOf(o)
	m.mu.Lock()
	before := m.objects[key]
	if m.objects[key] = nil; m.keep {
		m.objects[key] = o
	}
	m.mu.Unlock()
	if m.put != nil {
		m.put(before, o)
	}
}

// isSame tells whether nothing but the version of an object is another: that of a
// pod is with each change of its status. Nobody else may have the new one yet.
func isSame(before, now metav1.Object) bool {
	if before == nil {
		return false
	}
	version := now.GetResourceVersion()
	now.SetResourceVersion(before.GetResourceVersion())
	defer now.SetResourceVersion(version)
	return reflect.DeepEqual(before, now)
}

// tell says that there is news.
func (m *mirror) tell() {
	if m.news != nil {
		m.news()
	}
}

func (m *mirror) forget(key types.NamespacedName) {
	m.mu.Lock()
	before, ok := m.objects[key]
	delete(m.objects, key)
	m.mu.Unlock()
	if !ok {
		return
	}
	if m.drop != nil {
		m.drop(key, before)
	}
	m.tell()
}

// get returns an object, nil where it is not there.
func (m *mirror) get(namespace, name string) metav1.Object {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.objects[types.NamespacedName{Namespace: namespace, Name: name}]
}

// each calls tell for each object. It must not ask the mirror.
func (m *mirror) each(tell func(metav1.Object)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, object := range m.objects {
		tell(object)
	}
}

// names are those of all objects.
func (m *mirror) names() []types.NamespacedName {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Keys(m.objects))
}

// read tells whether all was read that there was when it began, or when an earlier
// run was last told.
func (m *mirror) read() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.isRead || m.isRecalled
}

// current tells whether all was read in this run.
func (m *mirror) current() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.isRead
}

func objectOf(object any) (metav1.Object, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("the reflector told of a %T, want an object", object)
	}
	return o, nil
}
