package policy

import (
	"net/netip"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// Pool is a SpiderIPPool that keeps the rules. It is never changed once made.
type Pool struct {
	Name      string
	UID       types.UID
	Subnet    netip.Prefix  // host bits cleared
	Addresses *netipx.IPSet // ips without excludeIPs; reserved addresses are still in it
	Gateway   netip.Addr    // the zero Addr if there is none
	Routes    []Route
	Affinity  Affinity
	Owner     *Application // of an application's own pool
	Interface string       // that an application's own pool was made for; "" where its labels name none
	Default   bool
	Disabled  bool
	Deleting  bool // gives no addresses, and goes when all are free
}

// Version is the pool's family: 4 or 6.
func (p Pool) Version() int64 { return versionOf(p.Subnet.Addr()) }

// Route is a route of a pod.
type Route struct {
	Dst netip.Prefix
	Gw  netip.Addr
}

// Affinity is who may use a pool. What is nil or empty selects everybody;
// names, where there are any, count instead of the selector beside them.
type Affinity struct {
	Pods           labels.Selector // nil in an application's own pool
	Namespaces     labels.Selector
	NamespaceNames []string
	Nodes          labels.Selector
	NodeNames      []string
	Networks       []string // "name" or "namespace/name" of NetworkAttachmentDefinitions
}

// PoolOf says what a SpiderIPPool means, and what the rules that need no other
// object say of it. What could not be parsed has its zero value.
func PoolOf(obj *v2beta1.SpiderIPPool) (Pool, Review) {
	spec := field.NewPath("spec")
	a, review := addressingOf(spec, poolWritten(&obj.Spec))
	pool := Pool{
		Name:      obj.Name,
		UID:       obj.UID,
		Subnet:    a.subnet,
		Addresses: a.addresses,
		Gateway:   a.gateway,
		Routes:    a.routes,
		Default:   isTrue(obj.Spec.Default),
		Disabled:  isTrue(obj.Spec.Disable) || isTrue(obj.Spec.Disabled),
		Deleting:  obj.DeletionTimestamp != nil,
	}
	// disable: false beside disabled: true is no contradiction: the API server
	// fills in the former where users wrote only the latter.
	if isTrue(obj.Spec.Disable) && obj.Spec.Disabled != nil && !*obj.Spec.Disabled {
		review.refuse(spec.Child("disabled"), false, "contradicts disable: true: want one of the two, or both alike")
	}
	var more Review
	pool.Owner, more = ownerOf(obj)
	review.add(more)
	if pool.Owner != nil {
		pool.Interface = obj.Labels[v2beta1.LabelInterface]
	}
	pool.Affinity, more = affinityOf(spec, &obj.Spec, pool.Owner != nil)
	review.add(more)
	return pool, review
}

// poolWritten is what pools have in common with subnets.
func poolWritten(spec *v2beta1.IPPoolSpec) written {
	return written{spec.IPVersion, spec.Subnet, spec.IPs, spec.ExcludeIPs, spec.Gateway, spec.Routes, spec.VLAN}
}

// isTrue says whether a flag is there and set.
func isTrue(b *bool) bool { return b != nil && *b }
