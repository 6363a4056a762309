package policy

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// Catalog is the objects that are there, each parsed once a change, with the
// indexes that rules about several objects need. An object that breaks rules
// is not answered, and still counts for overlaps as far as it can be parsed.
//
// A Catalog is safe for concurrent use. Its answers are values that nobody
// changes afterwards; callers must not change them either.
type Catalog struct {
	mu       sync.RWMutex
	config   Config
	pools    poolIndex
	subnets  subnetIndex
	reserved reservedIndex
	uses     useIndex
	ledgers  ledgerIndex
	networks networkIndex
}

// NewCatalog returns an empty Catalog with DefaultConfig.
func NewCatalog() *Catalog {
	return &Catalog{
		config:   DefaultConfig(),
		pools:    newPoolIndex(),
		subnets:  newSubnetIndex(),
		reserved: newReservedIndex(),
		uses:     newUseIndex(),
		ledgers:  newLedgerIndex(),
		networks: newNetworkIndex(),
	}
}

// SetConfig replaces the configuration. Later reviews follow it.
func (c *Catalog) SetConfig(config Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config = config
}

// Config returns the configuration.
func (c *Catalog) Config() Config {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.config
}

// Put makes an object known, or what became of it. An object with the UID and
// resource version of the one that is known costs nothing. Kinds that no rule
// asks for are ignored.
func (c *Catalog) Put(obj metav1.Object) {
	if pool, ok := obj.(*v2beta1.SpiderIPPool); ok {
		c.putPool(pool)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch obj := obj.(type) {
	case *v2beta1.SpiderSubnet:
		c.subnets.put(obj)
	case *v2beta1.SpiderReservedIP:
		c.reserved.put(obj)
	case *v2beta1.SpiderEndpoint:
		if !c.uses.knows(obj) {
			c.uses.put(endpointUses(obj))
		}
	case *v1alpha1.PoolLedger:
		c.putLedger(obj)
	case *v2beta1.SpiderCoordinator, *v2beta1.SpiderMultusConfig, *cniv1.NetworkAttachmentDefinition:
		c.networks.put(obj)
	}
}

// Remove forgets an object, by its kind and name.
func (c *Catalog) Remove(obj metav1.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch obj := obj.(type) {
	case *v2beta1.SpiderIPPool:
		c.pools.remove(obj.Name)
		c.uses.remove(useKey{kind: usedByStatus, name: obj.Name})
		delete(c.uses.noted, obj.Name)
	case *v2beta1.SpiderSubnet:
		c.subnets.remove(obj.Name)
	case *v2beta1.SpiderReservedIP:
		c.reserved.remove(obj.Name)
	case *v2beta1.SpiderEndpoint:
		c.uses.remove(useKey{kind: usedByEndpoint, namespace: obj.Namespace, name: obj.Name})
	case *v1alpha1.PoolLedger:
		c.removeLedger(obj.Name)
	case *v2beta1.SpiderCoordinator, *v2beta1.SpiderMultusConfig, *cniv1.NetworkAttachmentDefinition:
		c.networks.remove(obj)
	}
}

// Default fills in what an object leaves out and writes what it says in the
// one way that is stored: host bits of subnets cleared, addresses merged and
// in order, labels set. It changes obj in place, leaves what does not parse and
// objects that are being deleted as they are, and the second call changes
// nothing. Its warnings say what is meant otherwise than written. Finalizers are
// for controllers to set: of one that admission adds, kubectl would warn users.
func (c *Catalog) Default(obj metav1.Object) Review {
	if obj.GetDeletionTimestamp() != nil {
		return Review{}
	}
	switch obj := obj.(type) {
	case *v2beta1.SpiderIPPool:
		return defaultPool(c, obj)
	case *v2beta1.SpiderSubnet:
		return defaultSubnet(obj)
	case *v2beta1.SpiderReservedIP:
		return defaultReserved(obj)
	case *v2beta1.SpiderCoordinator:
		return defaultCoordinator(obj)
	case *v2beta1.SpiderMultusConfig:
		return defaultNetwork(obj)
	}
	return Review{}
}

// Review says what the rules say of an object, alone and beside all others. It
// changes nothing. old is the object before the change, and nil when obj is
// created.
//
// A change is refused for what it changes: a spec that stays as it was is
// accepted whatever it says, so that finalizers and labels of an object that
// breaks rules can still be written.
//
// An object that is in the Catalog already is no conflict of its own. Where two
// objects exist that may not exist together, as two replicas can admit them at
// the same time, Review of the stored object with a nil old refuses the one
// created later (then: the larger UID, the larger name) and accepts the other.
func (c *Catalog) Review(obj, old metav1.Object) Review {
	switch obj := obj.(type) {
	case *v2beta1.SpiderIPPool:
		return reviewPool(c, obj, before[v2beta1.SpiderIPPool](old))
	case *v2beta1.SpiderSubnet:
		return reviewSubnet(c, obj, before[v2beta1.SpiderSubnet](old))
	case *v2beta1.SpiderReservedIP:
		return reviewReserved(c, obj, before[v2beta1.SpiderReservedIP](old))
	case *v2beta1.SpiderEndpoint:
		return reviewEndpoint(obj, before[v2beta1.SpiderEndpoint](old))
	case *v2beta1.SpiderCoordinator:
		return reviewCoordinator(obj, before[v2beta1.SpiderCoordinator](old))
	case *v2beta1.SpiderMultusConfig:
		return reviewNetwork(c, obj, before[v2beta1.SpiderMultusConfig](old))
	case *cniv1.NetworkAttachmentDefinition:
		return reviewNAD(obj, before[cniv1.NetworkAttachmentDefinition](old))
	}
	return Review{}
}

// ReviewDelete says whether an object may be deleted. Only pools and subnets
// in use are refused, and only if the configuration says so: otherwise their
// finalizers keep them until they are free.
func (c *Catalog) ReviewDelete(obj metav1.Object) Review {
	switch obj := obj.(type) {
	case *v2beta1.SpiderIPPool:
		return reviewPoolDelete(c, obj)
	case *v2beta1.SpiderSubnet:
		return reviewSubnetDelete(c, obj)
	}
	return Review{}
}

// before is the object before a change as its own type, nil if there was none.
func before[T any, P interface {
	*T
	metav1.Object
}](old metav1.Object) *T {
	if o, ok := old.(P); ok {
		return (*T)(o)
	}
	return nil
}
