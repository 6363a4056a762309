package v2beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpiderSubnet is a range of addresses that pools, and those that applications
// are made, are cut from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=spidersubnets,scope=Cluster,shortName=ss,categories=spiderpool
// +kubebuilder:subresource:status
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=".spec.ipVersion"
// +kubebuilder:printcolumn:name="SUBNET",type=string,JSONPath=".spec.subnet"
// +kubebuilder:printcolumn:name="ALLOCATED-IP-COUNT",type=integer,JSONPath=".status.allocatedIPCount"
// +kubebuilder:printcolumn:name="TOTAL-IP-COUNT",type=integer,JSONPath=".status.totalIPCount"
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
type SpiderSubnet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the addresses that pools are cut from.
	Spec SubnetSpec `json:"spec"`
	// status is what the controller knows of the subnet.
	Status SubnetStatus `json:"status,omitempty"`
}

// SubnetSpec is what a user writes of a subnet.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ipVersion) || has(self.ipVersion) && self.ipVersion == oldSelf.ipVersion",fieldPath=".ipVersion",message="is immutable: delete the subnet and create another"
type SubnetSpec struct {
	// ipVersion is 4 or 6, by default the subnet's. Immutable.
	// +kubebuilder:validation:Enum=4;6
	// +optional
	IPVersion *int64 `json:"ipVersion,omitempty"`

	// subnet is a CIDR. Host bits are cleared, with a warning. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || isCIDR(self) && isCIDR(oldSelf) && cidr(self).masked() == cidr(oldSelf).masked()",messageExpression="'is immutable: it is ' + oldSelf + ', not ' + self + '; delete the subnet and create another'"
	Subnet string `json:"subnet"`

	// ips are addresses and ranges "first-last" of the subnet.
	// +optional
	IPs []string `json:"ips,omitempty"`

	// excludeIPs are taken from ips.
	// +optional
	ExcludeIPs []string `json:"excludeIPs,omitempty"`

	// gateway is inherited by the subnet's pools that name none.
	// +optional
	Gateway *string `json:"gateway,omitempty"`

	// routes are inherited by the subnet's pools that name none.
	// +optional
	Routes []Route `json:"routes,omitempty"`

	// vlan is a spelling of Spiderpool before 0.9. It is kept and has no effect.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +optional
	VLAN *int64 `json:"vlan,omitempty"`
}

// SubnetStatus is what the controller knows of a subnet.
type SubnetStatus struct {
	// controlledIPPools is JSON: pool → {"ips": [ranges], "application": "namespace/name"}.
	// +optional
	ControlledIPPools *string `json:"controlledIPPools,omitempty"`

	// totalIPCount is how many addresses the subnet has, at most 2^63-1.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalIPCount *int64 `json:"totalIPCount,omitempty"`

	// allocatedIPCount is how many of them pools hold.
	// +kubebuilder:validation:Minimum=0
	// +optional
	AllocatedIPCount *int64 `json:"allocatedIPCount,omitempty"`

	// conditions are Ready, and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SpiderSubnetList is a list of subnets.
//
// +kubebuilder:object:root=true
type SpiderSubnetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SpiderSubnet `json:"items"`
}
