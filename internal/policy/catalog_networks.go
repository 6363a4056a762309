package policy

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
)

// networkIndex is the Catalog's networks and coordinators, under its lock.
// Slices that it gives away are replaced and never changed.
type networkIndex struct {
	byName map[types.NamespacedName]networkEntry
	// byNAD has, by NetworkAttachmentDefinition, the SpiderMultusConfigs that want to make it, broken ones too.
	byNAD map[types.NamespacedName][]types.NamespacedName
	// inject has broken networks too, sorted only accepted ones.
	inject map[injection][]Network
	sorted []Network
	// coordinators are those accepted, by name.
	coordinators map[string]v2beta1.CoordinatorSpec
}

// networkEntry is what is remembered of one SpiderMultusConfig.
type networkEntry struct {
	stamp

	network Network
	review  Review
}

// injection is an annotation key with one of its values.
type injection struct{ key, value string }

func newNetworkIndex() networkIndex {
	return networkIndex{
		byName:       map[types.NamespacedName]networkEntry{},
		byNAD:        map[types.NamespacedName][]types.NamespacedName{},
		inject:       map[injection][]Network{},
		coordinators: map[string]v2beta1.CoordinatorSpec{},
	}
}

// Network is the accepted network of a SpiderMultusConfig.
func (c *Catalog) Network(namespace, name string) (Network, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.networks.byName[types.NamespacedName{Namespace: namespace, Name: name}]
	if !ok || !e.review.OK() {
		return Network{}, false
	}
	return e.network, true
}

// Networks are all accepted networks by namespace and name. The slice is
// shared: do not change it.
func (c *Catalog) Networks() []Network {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.networks.sorted
}

// NetworksFor are the networks that carry the inject annotation key with value
// among its values, by what they stand on (the bond, else the first master,
// else the resource), then by namespace and name. Broken ones are among them: a
// pod without one of its rails would be worse than none. The slice is shared:
// do not change it.
func (c *Catalog) NetworksFor(key, value string) []Network {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.networks.inject[injection{key, value}]
}

// InjectedValues are the values of the inject annotation key that networks
// carry, broken ones too, in order. It costs all networks with an annotation.
func (c *Catalog) InjectedValues(key string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var values []string
	for i := range c.networks.inject {
		if i.key == key {
			values = append(values, i.value)
		}
	}
	slices.Sort(values)
	return values
}

// Coordinator is the accepted spec of a SpiderCoordinator with its defaults.
// What it points to is shared: do not change it.
func (c *Catalog) Coordinator(name string) (v2beta1.CoordinatorSpec, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	spec, ok := c.networks.coordinators[name]
	return spec, ok
}

func (x *networkIndex) put(obj metav1.Object) {
	switch obj := obj.(type) {
	case *v2beta1.SpiderMultusConfig:
		x.putNetwork(obj)
	case *v2beta1.SpiderCoordinator:
		x.putCoordinator(obj)
	}
}

func (x *networkIndex) remove(obj metav1.Object) {
	switch obj := obj.(type) {
	case *v2beta1.SpiderMultusConfig:
		x.drop(types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name})
	case *v2beta1.SpiderCoordinator:
		delete(x.coordinators, obj.Name)
	}
}

func (x *networkIndex) putNetwork(obj *v2beta1.SpiderMultusConfig) {
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	if known, ok := x.byName[key]; ok && known.same(obj) {
		return
	}
	x.drop(key)
	n, review := networkOf(obj)
	x.byName[key] = networkEntry{stampOf(obj), n, review}
	x.byNAD[n.nadKey()] = append(slices.Clone(x.byNAD[n.nadKey()]), key)
	if review.OK() {
		x.sorted = inserted(x.sorted, n, byName)
	}
	for i := range n.injections() {
		x.inject[i] = inserted(x.inject[i], n, byParent)
	}
}

// putCoordinator remembers obj with its defaults, or forgets it if it breaks rules.
func (x *networkIndex) putCoordinator(obj *v2beta1.SpiderCoordinator) {
	obj = obj.DeepCopy()
	defaultCoordinator(obj)
	if !reviewCoordinator(obj, nil).OK() {
		delete(x.coordinators, obj.Name)
		return
	}
	x.coordinators[obj.Name] = obj.Spec
}

func (x *networkIndex) drop(key types.NamespacedName) {
	e, ok := x.byName[key]
	if !ok {
		return
	}
	delete(x.byName, key)
	nad := e.network.nadKey()
	if x.byNAD[nad] = without(x.byNAD[nad], func(n types.NamespacedName) bool { return n == key }); len(x.byNAD[nad]) == 0 {
		delete(x.byNAD, nad)
	}
	same := func(n Network) bool { return n.key() == key }
	if e.review.OK() {
		x.sorted = without(x.sorted, same)
	}
	for i := range e.network.injections() {
		if x.inject[i] = without(x.inject[i], same); len(x.inject[i]) == 0 {
			delete(x.inject, i)
		}
	}
}

// inserted is a copy of sorted with n at its place.
func inserted(sorted []Network, n Network, order func(a, b Network) int) []Network {
	at, _ := slices.BinarySearchFunc(sorted, n, order)
	return slices.Concat(sorted[:at:at], []Network{n}, sorted[at:])
}

// without is a copy of list without what drop says.
func without[T any](list []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), drop)
}

func byName(a, b Network) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func byParent(a, b Network) int {
	return cmp.Or(strings.Compare(a.parent(), b.parent()), byName(a, b))
}
