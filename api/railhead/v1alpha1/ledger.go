package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Finalizer keeps a ledger while its pool is there: without it, its addresses
// would look free.
const Finalizer = "railhead.io/ledger"

// AnnotationRelease of a PoolLedger is an administrator's word that nobody uses
// addresses that are in quarantine there: "all", or a list such as
// "10.0.0.7,10.0.0.20-10.0.0.29". They are free at once. The controller takes
// the annotation away when it was done, and says in an Event what could not be.
const AnnotationRelease = "railhead.io/release"

// AnnotationGives of a PoolLedger is the addresses that are granted out of it,
// "first" or "first-last" each, with ",". No other ledger gives them as long as
// it says so, whatever its writer believes that pools are: pools change, and two
// leaders may have seen different ones.
const AnnotationGives = "railhead.io/gives"

// AnnotationRebuilding of a PoolLedger says that it was lost and made again, and
// that nothing is granted out of it before all leases were written: a leader
// that is paused may still have grants of the lost one to publish.
const AnnotationRebuilding = "railhead.io/rebuilding"

// PoolLedger says who holds which addresses of one part of a SpiderIPPool. Only
// the leading controller writes it, by compare-and-swap: its write is the commit.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=poolledgers,scope=Cluster,categories=railhead
// +kubebuilder:printcolumn:name="POOL",type=string,JSONPath=".spec.pool"
// +kubebuilder:printcolumn:name="PART",type=string,JSONPath=".spec.part"
// +kubebuilder:printcolumn:name="EPOCH",type=integer,JSONPath=".spec.epoch"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp"
type PoolLedger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is who holds the addresses.
	Spec PoolLedgerSpec `json:"spec"`
}

// PoolLedgerSpec is the holders of addresses. What no run names is free.
type PoolLedgerSpec struct {
	// pool is the name of the SpiderIPPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Pool string `json:"pool"`

	// poolUID tells the pool from an earlier one of its name.
	// +optional
	PoolUID types.UID `json:"poolUID,omitempty"`

	// part is the addresses that this ledger is about, "first-last": a pool has a
	// ledger for each 2048 addresses of which some were ever held.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Part string `json:"part"`

	// epoch grows with each write.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="must not go back"
	Epoch int64 `json:"epoch"`

	// runs are in order of addresses and do not overlap.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	Runs []Run `json:"runs,omitempty"`
}

// Run is addresses that follow each other and have one holder: a node, a
// pinned identity (with the node it is on, if it is on one), or nobody, in
// quarantine.
//
// +kubebuilder:validation:XValidation:rule="has(self.quarantine) ? !has(self.node) && !has(self.identity) : has(self.node) || has(self.identity)",message="needs a node, an identity or both, or quarantine alone"
type Run struct {
	// addresses is "first" or "first-last".
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=91
	Addresses string `json:"addresses"`
	// epoch is that of the ledger when they were granted.
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch"`
	// node that holds the addresses.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Node string `json:"node,omitempty"`
	// target is the node that a virtual machine with this identity moves to.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Target string `json:"target,omitempty"`
	// identity of a pod that keeps the addresses over its lives: "StatefulSet/namespace/name/ordinal" or "VirtualMachine/namespace/name".
	// +kubebuilder:validation:MaxLength=600
	// +optional
	Identity string `json:"identity,omitempty"`
	// doubtful says that they came out of quarantine, and that the holder probes them before use.
	// +optional
	Doubtful bool `json:"doubtful,omitempty"`
	// quarantine is why nobody has the addresses for now.
	// +optional
	Quarantine *Quarantine `json:"quarantine,omitempty"`
}

// Quarantine is why addresses are given out last, and probed before.
type Quarantine struct {
	// reason is what happened to the addresses.
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
	// since is when.
	Since metav1.Time `json:"since"`
	// pod that had them, "namespace/name", where that is known: they are free once it is gone.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	Pod string `json:"pod,omitempty"`
}

// PoolLedgerList is a list of ledgers.
//
// +kubebuilder:object:root=true
type PoolLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PoolLedger `json:"items"`
}
