package address

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// cluster is what is known of the cluster that decides who gets which
// addresses. It is safe for concurrent use; objects in it are never changed.
type cluster struct {
	mu        sync.Mutex
	leases    map[string]*v1alpha1.AddressLease
	nodes     map[string]*corev1.Node
	pools     map[string]pool
	ledgers   map[string]*v1alpha1.PoolLedger
	endpoints map[types.NamespacedName]*v2beta1.SpiderEndpoint
	// ghosts are nodes that leases or ledgers name and that are not there, with the
	// last UID and labels that they were seen with, until it is certain that they are gone.
	ghosts map[string]*corev1.Node

	sorted  []*v1alpha1.AddressLease // by name; nil: to be made again
	pins    bool                     // a ledger with pinned addresses changed
	touched map[string]string        // ledgers that a round is to read again, each with its pool's name
}

// pool is a SpiderIPPool, parsed once a change.
type pool struct {
	policy.Pool

	generation int64
	closed     string // why it gives nothing; empty: it gives
}

func newCluster() *cluster {
	return &cluster{
		leases:    map[string]*v1alpha1.AddressLease{},
		nodes:     map[string]*corev1.Node{},
		pools:     map[string]pool{},
		ledgers:   map[string]*v1alpha1.PoolLedger{},
		endpoints: map[types.NamespacedName]*v2beta1.SpiderEndpoint{},
		ghosts:    map[string]*corev1.Node{},
		touched:   map[string]string{},
	}
}

// putLease takes a lease as a watch shows it, and says whether a round could
// make something of it. What a round wrote itself is known already.
func (c *cluster) putLease(lease *v1alpha1.AddressLease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.leases[lease.Name]
	if known != nil && known.UID == lease.UID && known.ResourceVersion == lease.ResourceVersion {
		return false
	}
	if c.leases[lease.Name], c.sorted = lease, nil; c.nodes[lease.Name] == nil && c.ghosts[lease.Name] == nil {
		c.ghosts[lease.Name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lease.Name}}
	}
	return true
}

// wroteLease takes a lease that a round wrote, unless a watch was quicker.
func (c *cluster) wroteLease(before string, after *v1alpha1.AddressLease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.leases[after.Name]; known != nil && known.UID == after.UID && known.ResourceVersion == before {
		c.leases[after.Name], c.sorted = after, nil
	}
}

func (c *cluster) removeLease(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leases, name)
	c.sorted = nil
}

// leaseList are all leases by name, in a slice of the caller's own.
func (c *cluster) leaseList() []*v1alpha1.AddressLease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sorted == nil {
		c.sorted = slices.SortedFunc(maps.Values(c.leases), func(a, b *v1alpha1.AddressLease) int { return strings.Compare(a.Name, b.Name) })
	}
	return slices.Clone(c.sorted)
}

// putLedger takes a ledger, and says whether an administrator wants something
// done with it. Nobody else has anything to say there.
func (c *cluster) putLedger(ledger *v1alpha1.PoolLedger) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.ledgers[ledger.Name]
	c.ledgers[ledger.Name] = ledger
	c.pins = c.pins || slices.ContainsFunc(ledger.Spec.Runs, func(run v1alpha1.Run) bool { return run.Identity != "" })
	_, released := ledger.Annotations[v1alpha1.AnnotationRelease]
	// A round writes on what is deleted and still needed, and must not follow itself.
	deleted := ledger.DeletionTimestamp != nil && (known == nil || known.UID != ledger.UID || known.DeletionTimestamp == nil)
	if released || deleted {
		c.touched[ledger.Name] = ledger.Spec.Pool
	}
	return released || deleted
}

// tookTouched is the ledgers that a round is to read again, and forgets them.
func (c *cluster) tookTouched() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	touched := c.touched
	c.touched = map[string]string{}
	return touched
}

// tookPins says whether pinned addresses may have moved, and forgets it.
func (c *cluster) tookPins() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved := c.pins
	c.pins = false
	return moved
}

// removeLedger takes that a ledger is not there any more: a round finds out
// whether it should be.
func (c *cluster) removeLedger(ledger *v1alpha1.PoolLedger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ledgers, ledger.Name)
	c.touched[ledger.Name] = ledger.Spec.Pool
}

// ledgerList are all ledgers by name.
func (c *cluster) ledgerList() []*v1alpha1.PoolLedger {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.ledgers), func(a, b *v1alpha1.PoolLedger) int { return strings.Compare(a.Name, b.Name) })
}

func (c *cluster) putEndpoint(e *v2beta1.SpiderEndpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints[client.ObjectKeyFromObject(e)] = e
}

func (c *cluster) removeEndpoint(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.endpoints, name)
}

func (c *cluster) endpoint(name types.NamespacedName) *v2beta1.SpiderEndpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints[name]
}

// endpointList are the SpiderEndpoints that satisfy a condition, in no order.
func (c *cluster) endpointList(wanted func(*v2beta1.SpiderEndpoint) bool) (list []*v2beta1.SpiderEndpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.endpoints {
		if wanted(e) {
			list = append(list, e)
		}
	}
	return list
}
