// Package selection says which pools each interface of a pod may take addresses
// of, in which order, and of every other pool that was named why not. It is
// pure: it asks a policy.Catalog and reads nothing else. Whether a pool has an
// address left is not its business: the holder goes on to the next pool when
// one is exhausted, and gives two interfaces that share a pool two addresses.
//
// The first of these that names a pool for an interface, in either family,
// counts for that interface alone; families that it does not name get no
// address, so that who asks for IPv4 only stays with IPv4 only:
//
//  1. annotations ipam.spidernet.io/subnets and subnet of the pod: its application's own pools
//  2. annotation ipam.spidernet.io/ippools of the pod, which then has to list the interface
//  3. annotation ipam.spidernet.io/ippool of the pod
//  4. annotations ipam.spidernet.io/default-ipv4-ippool and default-ipv6-ippool of its namespace
//  5. the network of the interface
//  6. pools with default: true
//
// Pools are taken in the order in which they are named: who lists pools means
// the first before the second. Spiderpool's order (pools with podAffinity before
// those with nodeName, then nodeAffinity, namespaceName, namespaceAffinity,
// multusName, then the rest, then by name) counts where nobody gave one: among
// the pools that one wildcard matches, and among default pools.
//
// Source: §1.8 and §3 of the reference of Spiderpool 1.2.
package selection

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/policy"
)

// Facts is what is known of a pod when its pools are chosen.
type Facts struct {
	Pod metav1.ObjectMeta
	// Namespace is the pod's, and Node the one it runs on, without a name before
	// that is known. Where labels are nil they could not be read, which none
	// lacks: selectors of them then pass over no pool, and a warning says so.
	Namespace, Node metav1.ObjectMeta

	// Above are the controllers above the pod's own, nearest first: the
	// Deployment of its ReplicaSet. The pod's own is among its owner references.
	Above []policy.Application

	// Interfaces are all that the pod has, eth0 first and then in the order of its
	// networks annotation, those too that get their addresses elsewhere: annotations name them by place.
	Interfaces []Interface

	// Closed says why a pool gives nothing beyond what its Catalog knows, such as
	// a rule that it breaks; "" if nothing does. It may be nil.
	Closed func(pool string) string
}

// Interface is one interface of a pod, and what its network says of its addresses.
type Interface struct {
	Name string
	// Network is the NetworkAttachmentDefinition; empty for the cluster's own network.
	Network types.NamespacedName
	// IPAM says that its addresses are of our pools.
	IPAM  bool
	Pools policy.Pools
	// CleanGateway says that the network gives no default route.
	CleanGateway bool
	// IPs are the addresses that the networks annotation asks for, with the
	// prefix length that was written, else that of an address alone.
	IPs []netip.Prefix
	// Err is why it is not known what the network says; nil if it is. Who learns
	// it otherwise, as from the node, clears it.
	Err error
	// Parent is what the network stands on, on the node; nil where that is not
	// known. Only networks with matchMasterSubnet need it.
	Parent *Parent
}

// Parent is a netdev of a node: of a VF its PF.
type Parent struct {
	Name      string
	Addresses []netip.Prefix
}

// Selection is what was chosen for a pod.
type Selection struct {
	Pod      types.NamespacedName
	Identity Identity // zero for pods that come back under other names
	// Migration says that the pod is the target of a virtual machine's live migration.
	Migration bool
	// NICs are those with addresses of our pools, in the order of Facts.Interfaces.
	NICs []NIC
	// Routes are those of the pod's annotation; see [Routes].
	Routes []policy.Route
	// Warnings are about what has no effect.
	Warnings []string
}

// NIC is what one interface may take addresses of.
type NIC struct {
	Interface string
	// Families are those that it gets an address of, IPv4 first.
	Families []Family
	// Considered are all pools that were looked at, candidates too, in their order.
	Considered []Considered
	// CleanGateway says that it gets no default route.
	CleanGateway bool
	// Err is why it cannot be served; nil if it can.
	Err error
}

// Family is the pools of one interface and family.
type Family struct {
	Version int64 // 4 or 6
	// Pools are the candidates, in the order in which they are tried.
	Pools []policy.Pool
	// Exact is the address that is asked for and no other; the zero Addr for any.
	Exact netip.Addr
}

// Considered is a pool that was looked at.
type Considered struct {
	Pool   string `json:"pool"`   // or the pattern that matches none
	Family int64  `json:"family"` // that it was named for, 4 or 6
	From   string `json:"from"`   // who named it
	// Why it was passed over; empty for a candidate.
	Why string `json:"why,omitempty"`
}
