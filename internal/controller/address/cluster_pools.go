package address

import (
	"maps"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam"
	"railhead/internal/policy"
)

// conditionReady is the condition by which the controller of pools says that one
// gives addresses: it has reviewed it beside all others.
const conditionReady = "Ready"

// putPool takes a pool, and says whether a round could make something of it.
func (c *cluster) putPool(obj *v2beta1.SpiderIPPool) bool {
	closed := closedBecause(obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.pools[obj.Name]
	if ok && known.UID == obj.UID && known.generation == obj.Generation && known.Deleting == (obj.DeletionTimestamp != nil) {
		if known.closed == closed {
			return false
		}
		known.closed = closed
		c.pools[obj.Name] = known
		return true
	}
	parsed, review := policy.PoolOf(obj)
	if closed == "" && !review.OK() { // the condition is of an earlier generation
		closed = review.Message()
	}
	c.pools[obj.Name] = pool{parsed, obj.Generation, closed}
	return true
}

func (c *cluster) removePool(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pools, name)
}

// closedBecause is why a pool gives no addresses, empty if it does. Until it has
// its finalizer, it could go while nodes hold addresses of it.
func closedBecause(obj *v2beta1.SpiderIPPool) string {
	ready := meta.FindStatusCondition(obj.Status.Conditions, conditionReady)
	switch {
	case obj.DeletionTimestamp != nil:
		return "it is being deleted"
	case obj.Spec.Disable != nil && *obj.Spec.Disable, obj.Spec.Disabled != nil && *obj.Spec.Disabled:
		return "it is disabled"
	case ready == nil || !controllerutil.ContainsFinalizer(obj, v2beta1.Finalizer):
		return "the controller has not reviewed it yet"
	case ready.Status != metav1.ConditionTrue:
		return ready.Message
	}
	return ""
}

// viewPools are the pools as rounds read them.
func (c *cluster) viewPools(reserved func(version int64) *netipx.IPSet) map[string]ipam.Pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	view := make(map[string]ipam.Pool, len(c.pools))
	known := c.knownNodes()
	for name, p := range c.pools {
		if !p.Subnet.IsValid() { // it never gave any address
			continue
		}
		view[name] = ipam.Pool{
			Name: name, UID: p.UID, Subnet: p.Subnet, Addresses: without(p.Addresses, reserved(p.Version())),
			Closed: p.closed, Deleting: p.Deleting, Serves: servesOf(p.Affinity, known),
		}
	}
	return view
}

// knownNodes are the nodes that are there or may be. It is called with the lock held.
func (c *cluster) knownNodes() map[string]*corev1.Node {
	known := make(map[string]*corev1.Node, len(c.nodes)+len(c.ghosts))
	maps.Copy(known, c.ghosts)
	maps.Copy(known, c.nodes)
	return known
}

// servesOf says which nodes an affinity selects; nil: all.
func servesOf(a policy.Affinity, nodes map[string]*corev1.Node) func(string) bool {
	switch {
	case len(a.NodeNames) > 0:
		names := make(map[string]struct{}, len(a.NodeNames))
		for _, name := range a.NodeNames {
			names[name] = struct{}{}
		}
		return func(node string) bool { _, ok := names[node]; return ok }
	case a.Nodes == nil:
		return nil
	}
	return func(name string) bool {
		node := nodes[name]
		return node != nil && a.Nodes.Matches(labels.Set(node.Labels))
	}
}

// without is a set without another one. A nil set is empty.
func without(set, other *netipx.IPSet) *netipx.IPSet {
	var build netipx.IPSetBuilder
	if set != nil {
		build.AddSet(set)
	}
	if other != nil {
		build.RemoveSet(other)
	}
	rest, err := build.IPSet()
	if err != nil { // of invalid ranges, which sets have none of
		return &netipx.IPSet{}
	}
	return rest
}
