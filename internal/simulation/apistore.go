package simulation

import (
	"maps"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is an object of Kubernetes as JSON has it. It is immutable.
type object = map[string]any

// change is a change of an object, as a watch tells it.
type change struct {
	typ      string // ADDED, MODIFIED or DELETED
	resource schema.GroupVersionResource
	version  uint64
	object   object
}

// keptChanges is how many changes a watch can begin behind.
const keptChanges = 4096

// store holds the objects of the API server. It is safe for concurrent use.
type store struct {
	mu      sync.Mutex
	version uint64
	objects map[schema.GroupVersionResource]map[string]object // by namespace/name
	changes []change
	changed chan struct{} // closed at the next change
}

func newStore() *store {
	return &store{version: 1, objects: map[schema.GroupVersionResource]map[string]object{}, changed: make(chan struct{})}
}

// put adds an object or puts it in the place of one of the same name.
func (s *store) put(resource schema.GroupVersionResource, o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]object{}
	}
	typ := "ADDED"
	if _, ok := s.objects[resource][keyOf(o)]; ok {
		typ = "MODIFIED"
	}
	o = s.record(typ, resource, o)
	s.objects[resource][keyOf(o)] = o
}

// remove takes an object away.
func (s *store) remove(resource schema.GroupVersionResource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := namespace + "/" + name
	if o, ok := s.objects[resource][key]; ok {
		delete(s.objects[resource], key)
		s.record("DELETED", resource, o)
	}
}

// record notes a change and returns the object with its version.
func (s *store) record(typ string, resource schema.GroupVersionResource, o object) object {
	s.version++
	o = withVersion(o, s.version)
	s.changes = append(s.changes, change{typ: typ, resource: resource, version: s.version, object: o})
	if excess := len(s.changes) - keptChanges; excess > 0 {
		s.changes = append([]change(nil), s.changes[excess:]...)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return o
}

// get returns an object.
func (s *store) get(resource schema.GroupVersionResource, namespace, name string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[resource][namespace+"/"+name]
	return o, ok
}

// list returns all objects of a kind, and the version that this is.
func (s *store) list(resource schema.GroupVersionResource) ([]object, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	objects := make([]object, 0, len(s.objects[resource]))
	for _, o := range s.objects[resource] {
		objects = append(objects, o)
	}
	return objects, s.version
}

// after returns the changes of a kind after a version, the version up to which
// they go, and a channel that is closed when there are more. It is not ok where
// some of them are not kept.
func (s *store) after(resource schema.GroupVersionResource, version uint64) (found []change, now uint64, more <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changes) > 0 && s.changes[0].version > version+1 {
		return nil, s.version, s.changed, false
	}
	for _, c := range s.changes {
		if c.version > version && c.resource == resource {
			found = append(found, c)
		}
	}
	return found, s.version, s.changed, true
}

func metadataOf(o object) object {
	m, _ := o["metadata"].(object)
	return m
}

// text returns a field of an object's metadata that is text.
func text(o object, field string) string {
	v, _ := metadataOf(o)[field].(string)
	return v
}

func keyOf(o object) string { return text(o, "namespace") + "/" + text(o, "name") }

// withVersion returns a copy of an object with another resource version.
func withVersion(o object, version uint64) object {
	changed, metadata := maps.Clone(o), maps.Clone(metadataOf(o))
	metadata["resourceVersion"] = strconv.FormatUint(version, 10)
	changed["metadata"] = metadata
	return changed
}
