package v2beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpiderIPPool is a set of addresses of one subnet that pods are given.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=spiderippools,scope=Cluster,shortName=sp,categories=spiderpool
// +kubebuilder:subresource:status
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=".spec.ipVersion"
// +kubebuilder:printcolumn:name="SUBNET",type=string,JSONPath=".spec.subnet"
// +kubebuilder:printcolumn:name="ALLOCATED-IP-COUNT",type=integer,JSONPath=".status.allocatedIPCount"
// +kubebuilder:printcolumn:name="TOTAL-IP-COUNT",type=integer,JSONPath=".status.totalIPCount"
// +kubebuilder:printcolumn:name="DEFAULT",type=boolean,JSONPath=".spec.default"
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="DISABLE",type=boolean,JSONPath=".spec.disable",priority=10
// +kubebuilder:printcolumn:name="NODENAME",type=string,JSONPath=".spec.nodeName",priority=10
// +kubebuilder:printcolumn:name="MULTUSNAME",type=string,JSONPath=".spec.multusName",priority=10
// +kubebuilder:printcolumn:name="APP-NAMESPACE",type=string,JSONPath=".spec.podAffinity.matchLabels.ipam\\.spidernet\\.io/app-namespace",priority=10
type SpiderIPPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the addresses, and who may have them.
	Spec IPPoolSpec `json:"spec"`
	// status is what the controller knows of the pool.
	Status IPPoolStatus `json:"status,omitempty"`
}

// IPPoolSpec is what a user writes of a pool.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ipVersion) || has(self.ipVersion) && self.ipVersion == oldSelf.ipVersion",fieldPath=".ipVersion",message="is immutable: delete the pool and create another"
type IPPoolSpec struct {
	// ipVersion is 4 or 6, by default the subnet's. Immutable.
	// +kubebuilder:validation:Enum=4;6
	// +optional
	IPVersion *int64 `json:"ipVersion,omitempty"`

	// subnet is a CIDR. Host bits are cleared, with a warning. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || isCIDR(self) && isCIDR(oldSelf) && cidr(self).masked() == cidr(oldSelf).masked()",messageExpression="'is immutable: it is ' + oldSelf + ', not ' + self + '; delete the pool and create another'"
	Subnet string `json:"subnet"`

	// ips are addresses and ranges "first-last" of the subnet.
	// +optional
	IPs []string `json:"ips,omitempty"`

	// excludeIPs are taken from ips.
	// +optional
	ExcludeIPs []string `json:"excludeIPs,omitempty"`

	// gateway is an address of the subnet that no pod gets.
	// +optional
	Gateway *string `json:"gateway,omitempty"`

	// routes are set in pods beside the default route.
	// +optional
	Routes []Route `json:"routes,omitempty"`

	// podAffinity selects the pods that may use the pool.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	PodAffinity *metav1.LabelSelector `json:"podAffinity,omitempty"`

	// namespaceAffinity selects the namespaces whose pods may use the pool.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	NamespaceAffinity *metav1.LabelSelector `json:"namespaceAffinity,omitempty"`

	// namespaceName lists the namespaces whose pods may use the pool; with it, namespaceAffinity counts no more.
	// +optional
	NamespaceName []string `json:"namespaceName,omitempty"`

	// nodeAffinity selects the nodes whose pods may use the pool.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	NodeAffinity *metav1.LabelSelector `json:"nodeAffinity,omitempty"`

	// nodeName lists the nodes whose pods may use the pool; with it, nodeAffinity counts no more.
	// +optional
	NodeName []string `json:"nodeName,omitempty"`

	// multusName lists the networks whose interfaces may use the pool, as "name" or "namespace/name".
	// +optional
	MultusName []string `json:"multusName,omitempty"`

	// default says that pods use the pool when nothing else names one.
	// +kubebuilder:default=false
	// +optional
	Default *bool `json:"default,omitempty"`

	// disable forbids new addresses; those in use stay.
	// +kubebuilder:default=false
	// +optional
	Disable *bool `json:"disable,omitempty"`

	// disabled is another spelling of disable.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`

	// vlan is a spelling of Spiderpool before 0.9. It is kept and has no effect: the VLAN is the network's.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +optional
	VLAN *int64 `json:"vlan,omitempty"`
}

// Route is one route of a pod.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Route struct {
	// dst is a CIDR.
	Dst string `json:"dst"`
	// gw is an address.
	Gw string `json:"gw"`
}

// IPPoolStatus is what the controller knows of a pool.
type IPPoolStatus struct {
	// allocatedIPs is which pods have addresses, as JSON: address → {"pod": "namespace/name", "podUid": UID}. It is kept in pools with up to 1,000 addresses. Addresses that no PoolLedger is about yet stay as Spiderpool noted them.
	// +optional
	AllocatedIPs *string `json:"allocatedIPs,omitempty"`

	// totalIPCount is how many addresses the pool has, at most 2^63-1.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalIPCount *int64 `json:"totalIPCount,omitempty"`

	// allocatedIPCount is how many addresses of the pool pods have.
	// +kubebuilder:validation:Minimum=0
	// +optional
	AllocatedIPCount *int64 `json:"allocatedIPCount,omitempty"`

	// conditions are Ready, and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SpiderIPPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type SpiderIPPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SpiderIPPool `json:"items"`
}
