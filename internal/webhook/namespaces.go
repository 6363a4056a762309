package webhook

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/policy"
)

// Namespaces knows which namespaces have networks injected into all their pods.
// It is fed by whoever watches namespaces, and safe for concurrent use.
type Namespaces struct {
	read     func(ctx context.Context, name string) (annotations map[string]string, err error)
	onChange func()

	mu    sync.RWMutex
	known map[string]map[string]string // by name; nil: none of the annotations that count
}

// NewNamespaces returns an empty one. read asks the API for the annotations of a
// namespace that is not known yet: a pod may come before the watch tells of its
// namespace.
func NewNamespaces(read func(ctx context.Context, name string) (map[string]string, error)) *Namespaces {
	return &Namespaces{read: read, onChange: func() {}, known: map[string]map[string]string{}}
}

// OnChange has f called whenever the answer of Annotated became another. It is set
// before the first Put.
func (n *Namespaces) OnChange(f func()) { n.onChange = f }

// Put takes a namespace as it is now.
func (n *Namespaces) Put(namespace metav1.Object) {
	n.set(namespace.GetName(), ours(namespace.GetAnnotations()), true)
}

// Remove forgets a namespace.
func (n *Namespaces) Remove(name string) { n.set(name, nil, false) }

func (n *Namespaces) set(name string, annotations map[string]string, exists bool) {
	n.mu.Lock()
	had := len(n.known[name]) > 0
	if exists {
		n.known[name] = annotations
	} else {
		delete(n.known, name)
	}
	n.mu.Unlock()
	if has := len(annotations) > 0; had != has {
		n.onChange()
	}
}

// Annotations returns the annotations of a namespace that count for its pods. It
// asks the API for a namespace that it does not know, or knows without any:
// nobody asks for its pods, unless the API server knows more already.
func (n *Namespaces) Annotations(ctx context.Context, name string) (map[string]string, error) {
	n.mu.RLock()
	annotations := n.known[name]
	n.mu.RUnlock()
	if len(annotations) > 0 {
		return annotations, nil
	}
	all, err := n.read(ctx, name)
	if err != nil {
		return nil, err
	}
	return ours(all), nil
}

// Annotated returns the names of the namespaces that have networks injected, sorted.
func (n *Namespaces) Annotated() []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(n.known)) {
		if len(n.known[name]) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// ours are those of the annotations that count.
func ours(annotations map[string]string) map[string]string {
	var some map[string]string
	for _, key := range policy.InjectKeys() {
		if value := annotations[key]; value != "" {
			if some == nil {
				some = map[string]string{}
			}
			some[key] = value
		}
	}
	return some
}
