package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// above is what is above the controllers of pods, by the UID of those.
type above struct {
	mu    sync.RWMutex
	known map[types.UID][]policy.Application
}

func (a *above) get(uid types.UID) ([]policy.Application, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	applications, ok := a.known[uid]
	return applications, ok
}

func (a *above) set(uid types.UID, applications []policy.Application) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[uid] = applications
}

// all is what is known.
func (a *above) all() map[types.UID][]policy.Application {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return maps.Clone(a.known)
}

// retain forgets what is above controllers that no pod has.
func (a *above) retain(used map[types.UID]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.known, func(uid types.UID, _ []policy.Application) bool { return !used[uid] })
}

// owned says in which namespaces applications have pools of their own. It is safe
// for concurrent use.
type owned struct {
	mu    sync.RWMutex
	by    map[string]string // namespace by pool
	count map[string]int    // of pools by namespace
}

// set notes in which namespace a pool's application is; "" if it has none.
func (o *owned) set(pool, namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if before, ok := o.by[pool]; ok {
		delete(o.by, pool)
		if o.count[before]--; o.count[before] == 0 {
			delete(o.count, before)
		}
	}
	if namespace != "" {
		o.by[pool] = namespace
		o.count[namespace]++
	}
}

func (o *owned) has(namespace string) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.count[namespace] > 0
}

// Above returns the controllers above the pod's own, the nearest first: the
// Deployment of a ReplicaSet, the CronJob of a Job. There are none where no pool
// could be theirs: the pod asks for no pool of its application, and no application
// of its namespace has one.
//
// What is above a controller is asked for once, when the first of its pods comes to
// the node. An error means that it cannot be known now.
func (c *Cache) Above(ctx context.Context, pod *metav1.PartialObjectMetadata) ([]policy.Application, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || !c.mayHaveOwnPool(pod) {
		return nil, nil
	}
	resource, ok := controlled(owner)
	if !ok {
		return nil, nil
	}
	if applications, ok := c.above.get(owner.UID); ok {
		return applications, nil
	}
	found, err := c.client.get(ctx, resource, pod.Namespace, owner.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.UID != owner.UID:
		return nil, nil // nothing is above what is gone
	case err != nil:
		return nil, fmt.Errorf("what is above %s %s of pod %s: %w", owner.Kind, title(pod.Namespace, owner.Name), title(pod.Namespace, pod.Name), err)
	}
	applications := applicationsOf(found)
	c.above.set(owner.UID, applications)
	c.disk.note()
	return applications, nil
}

// mayHaveOwnPool tells whether there may be a pool of what is above a pod.
func (c *Cache) mayHaveOwnPool(pod *metav1.PartialObjectMetadata) bool {
	return pod.Annotations[v2beta1.AnnotationSubnet] != "" || pod.Annotations[v2beta1.AnnotationSubnets] != "" || c.owned.has(pod.Namespace)
}

// controlled are the controllers that others make.
func controlled(owner *metav1.OwnerReference) (schema.GroupVersionResource, bool) {
	switch {
	case owner.APIVersion == "apps/v1" && owner.Kind == "ReplicaSet":
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, true
	case owner.APIVersion == "batch/v1" && owner.Kind == "Job":
		return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, true
	}
	return schema.GroupVersionResource{}, false
}

// applicationsOf is the controller of an object.
func applicationsOf(o *metav1.PartialObjectMetadata) []policy.Application {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return nil
	}
	return []policy.Application{{GroupVersion: owner.APIVersion, Kind: owner.Kind, Namespace: o.Namespace, Name: owner.Name, UID: owner.UID}}
}
