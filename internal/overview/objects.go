package overview

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// Objects are those of a cluster, in any order. Kinds that were not read or
// could not be read are nil, which is not the same as that there are none.
type Objects struct {
	// Namespace is where networks were looked for; "" for everywhere.
	Namespace string

	Pools     []*v2beta1.SpiderIPPool
	Subnets   []*v2beta1.SpiderSubnet
	Reserved  []*v2beta1.SpiderReservedIP
	Endpoints []*v2beta1.SpiderEndpoint
	Configs   []*v2beta1.SpiderMultusConfig
	NADs      []*cniv1.NetworkAttachmentDefinition
	Pods      []*metav1.PartialObjectMetadata // those that have not ended
	Ledgers   []*v1alpha1.PoolLedger
	Leases    []*v1alpha1.AddressLease

	// LedgersLeftOut says that some ledgers do not have the shape of their kind,
	// and are in Problems alone.
	LedgersLeftOut bool

	// Problems are why something is missing, and what is odd.
	Problems []error
}

// catalog is what the rules make of the objects. Those that admission filled in
// are as they were; those that nobody reviewed get their defaults here.
func (o *Objects) catalog() *policy.Catalog {
	c := policy.NewCatalog()
	put(c, o.Subnets)
	put(c, o.Pools)
	put(c, o.Reserved)
	put(c, o.Endpoints)
	put(c, o.Configs)
	put(c, o.Ledgers)
	return c
}

func put[T interface {
	metav1.Object
	DeepCopy() T
}](c *policy.Catalog, objects []T) {
	for _, object := range objects {
		filled := object.DeepCopy()
		c.Default(filled)
		c.Put(filled)
	}
}

// readiness is what the controller says of an object in its conditions.
func readiness(conditions []metav1.Condition) (ready *bool, why string) {
	for _, c := range conditions {
		if c.Type != "Ready" || c.Status == metav1.ConditionUnknown {
			continue
		}
		if c.Status == metav1.ConditionTrue {
			return new(true), ""
		}
		return new(false), c.Reason + ": " + c.Message
	}
	return nil, ""
}
