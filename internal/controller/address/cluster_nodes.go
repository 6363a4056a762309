package address

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
)

// putNode takes a node, and says whether a round could make something of it.
func (c *cluster) putNode(node *corev1.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.nodes[node.Name]
	c.nodes[node.Name] = node
	delete(c.ghosts, node.Name)
	return known == nil || known.UID != node.UID || isOutOfService(known) != isOutOfService(node) ||
		!equality.Semantic.DeepEqual(known.Labels, node.Labels)
}

// removeNode takes that a node is not there any more. It may come back: for now it is a ghost.
func (c *cluster) removeNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if node := c.nodes[name]; node != nil {
		c.ghosts[name] = node
	}
	delete(c.nodes, name)
}

// haunt has nodes be ghosts that leases or ledgers name and that are not there.
// Their UID is not known, so that nothing is granted to them, and nothing taken.
func (c *cluster) haunt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ledger := range c.ledgers {
		for i := range ledger.Spec.Runs {
			for _, name := range []string{ledger.Spec.Runs[i].Node, ledger.Spec.Runs[i].Target} {
				if name != "" && c.nodes[name] == nil && c.ghosts[name] == nil {
					c.ghosts[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
				}
			}
		}
	}
}

// ghostList are the names of the nodes that may be gone.
func (c *cluster) ghostList() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.ghosts))
}

// bury notes that a node is gone for good, unless it has come back.
func (c *cluster) bury(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ghosts, name)
}

// isOutOfService says whether somebody vouches for a node being shut down: its
// pods are deleted by force then, and their volumes detached.
func isOutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// isFenced says whether an administrator's word on a lease is about the node
// with a UID; where that is not known, about the one that the lease is of.
func isFenced(lease *v1alpha1.AddressLease, uid types.UID) bool {
	if lease == nil {
		return false
	}
	word := types.UID(lease.Annotations[v1alpha1.AnnotationFenced])
	if uid == "" {
		uid = lease.Spec.NodeUID
	}
	return word != "" && word == uid
}
