package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationFenced of an AddressLease is an administrator's word that the node
// with this UID runs no pods any more: its addresses are freed at once, and the
// node gets none until the annotation is gone.
const AnnotationFenced = "railhead.io/fenced"

// AddressLease is the addresses of one node, whose name it has. The node's
// agent writes the spec, the leading controller the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=addressleases,scope=Cluster,categories=railhead
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="NODE-UID",type=string,JSONPath=".spec.nodeUID"
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=".status.reason"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp"
type AddressLease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the node's agent wants and gives back.
	Spec AddressLeaseSpec `json:"spec,omitempty"`
	// status is what the controller granted.
	Status AddressLeaseStatus `json:"status,omitempty"`
}

// AddressLeaseSpec is what a node's agent wants and gives back.
type AddressLeaseSpec struct {
	// nodeUID tells the node from an earlier one of its name.
	// +optional
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// bootID tells one start of the node from another.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// session tells one run of the agent from another. An agent without its
	// records writes a new one before it uses anything, so that no request of an
	// earlier run can arrive after it.
	// +optional
	Session string `json:"session,omitempty"`
	// wants is how many addresses of each pool the node needs.
	// +listType=map
	// +listMapKey=pool
	// +optional
	Wants []Want `json:"wants,omitempty"`
	// groups are pools that pods use together: where they are alike, a node gets
	// the same host parts of all.
	// +listType=atomic
	// +optional
	Groups []Group `json:"groups,omitempty"`
	// exact are addresses that the node needs and no others: pods have them
	// already, or ask for them by annotation.
	// +listType=map
	// +listMapKey=pool
	// +optional
	Exact []Exact `json:"exact,omitempty"`
	// pins are the pods of this node that keep their addresses over their lives.
	// +listType=map
	// +listMapKey=identity
	// +optional
	Pins []Pin `json:"pins,omitempty"`
	// returns are addresses that the node gives back. It uses them no more from the moment it writes so.
	// +listType=atomic
	// +optional
	Returns []Return `json:"returns,omitempty"`
}

// Want is how many addresses of a pool a node needs: what its pods have, what
// they wait for, and the low mark of its reserve. Pinned addresses do not count.
type Want struct {
	// pool is the name of the SpiderIPPool.
	// +kubebuilder:validation:MinLength=1
	Pool string `json:"pool"`
	// addresses is how many.
	// +kubebuilder:validation:Minimum=0
	Addresses int64 `json:"addresses"`
}

// Group is pools that pods use together.
type Group struct {
	// pools are names of SpiderIPPools.
	// +listType=atomic
	Pools []string `json:"pools"`
}

// Exact is addresses of a pool that a node needs, and no others.
type Exact struct {
	// pool is the name of the SpiderIPPool.
	// +kubebuilder:validation:MinLength=1
	Pool string `json:"pool"`
	// addresses is "first" or "first-last" each.
	// +listType=atomic
	Addresses []string `json:"addresses"`
}

// Pin is a pod that keeps its addresses over its lives.
type Pin struct {
	// identity is "StatefulSet/namespace/name/ordinal" or "VirtualMachine/namespace/name".
	// +kubebuilder:validation:MaxLength=600
	// +kubebuilder:validation:Pattern=`^(StatefulSet/[^/]+/[^/]+/(0|[1-9][0-9]*)|VirtualMachine/[^/]+/[^/]+)$`
	Identity string `json:"identity"`
	// wants is how many addresses of each pool it has. Addresses that it keeps in
	// other pools are freed.
	// +listType=atomic
	Wants []Want `json:"wants"`
	// migration says that a virtual machine moves to this node while it runs on
	// another: both have its addresses until one of them returns them.
	// +optional
	Migration bool `json:"migration,omitempty"`
}

// Return is addresses that a node gives back. Pinned ones stay with their
// identity.
type Return struct {
	// pool is the name of the SpiderIPPool.
	// +kubebuilder:validation:MinLength=1
	Pool string `json:"pool"`
	// epoch is that of the grant by which the node had them, so that a late return frees no newer grant.
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch"`
	// addresses is "first" or "first-last" each.
	// +listType=atomic
	Addresses []string `json:"addresses"`
	// quarantine is why nobody should have them for now, such as somebody else's claim on the wire.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Quarantine string `json:"quarantine,omitempty"`
}

// AddressLeaseStatus is what the controller granted.
type AddressLeaseStatus struct {
	// observedGeneration is of the spec that this answers.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// nodeUID is the node that this is for. A node with another UID holds nothing of it.
	// +optional
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// reason is why the node as a whole is given nothing, or why what an
	// administrator wrote on the lease has no effect; empty where all is well.
	// +optional
	Reason string `json:"reason,omitempty"`
	// pools are those of which the node holds or wants addresses.
	// +listType=map
	// +listMapKey=pool
	// +optional
	Pools []LeasedPool `json:"pools,omitempty"`
}

// LeasedPool is what a node holds of one pool.
type LeasedPool struct {
	// pool is the name of the SpiderIPPool.
	// +kubebuilder:validation:MinLength=1
	Pool string `json:"pool"`
	// grants are the addresses that the node holds.
	// +listType=atomic
	// +optional
	Grants []Grant `json:"grants,omitempty"`
	// reserve is how many addresses beyond its needs the node may hold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Reserve int64 `json:"reserve,omitempty"`
	// recall is how many unused addresses the controller would like back.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Recall int64 `json:"recall,omitempty"`
	// revoke is which addresses the controller would like back once they are
	// unused, "first" or "first-last" each: their pool has them no more, or
	// somebody needs exactly these.
	// +listType=atomic
	// +optional
	Revoke []string `json:"revoke,omitempty"`
	// short is why the node has less than it needs, empty if it has enough.
	// +optional
	Short string `json:"short,omitempty"`
}

// Grant is addresses that a node got at once, or what is left of them.
type Grant struct {
	// epoch is that of the ledger when they were granted. It is another one each time an address is granted.
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch"`
	// addresses is "first" or "first-last" each, in order.
	// +listType=atomic
	Addresses []string `json:"addresses"`
	// identity of the pod that they are pinned to, and for nobody else.
	// +optional
	Identity string `json:"identity,omitempty"`
	// doubtful says that somebody may still have them: they are probed on the wire before use.
	// +optional
	Doubtful bool `json:"doubtful,omitempty"`
}

// AddressLeaseList is a list of leases.
//
// +kubebuilder:object:root=true
type AddressLeaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddressLease `json:"items"`
}
