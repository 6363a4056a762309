package v2beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpiderEndpoint is the addresses of one pod, whose name it has (of a KubeVirt
// VM: the VM's). Agents write it; nobody else should.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=spiderendpoints,scope=Namespaced,shortName=se,categories=spiderpool
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="INTERFACE",type=string,JSONPath=".status.current.ips[0].interface"
// +kubebuilder:printcolumn:name="IPV4POOL",type=string,JSONPath=".status.current.ips[0].ipv4Pool"
// +kubebuilder:printcolumn:name="IPV4",type=string,JSONPath=".status.current.ips[0].ipv4"
// +kubebuilder:printcolumn:name="IPV6POOL",type=string,JSONPath=".status.current.ips[0].ipv6Pool"
// +kubebuilder:printcolumn:name="IPV6",type=string,JSONPath=".status.current.ips[0].ipv6"
// +kubebuilder:printcolumn:name="NODE",type=string,JSONPath=".status.current.node"
type SpiderEndpoint struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is who has which addresses. It is no subresource: one write says all of it.
	Status EndpointStatus `json:"status,omitempty"`
}

// EndpointStatus is who has the addresses.
//
// +kubebuilder:pruning:PreserveUnknownFields
type EndpointStatus struct {
	// current is what the pod has in this life of it.
	Current EndpointAllocation `json:"current"`
	// ownerControllerType is the kind that made the pod, "Pod" if none did.
	OwnerControllerType string `json:"ownerControllerType"`
	// ownerControllerName is the name of what made the pod.
	OwnerControllerName string `json:"ownerControllerName"`
}

// EndpointAllocation is the addresses of one life of a pod.
//
// +kubebuilder:pruning:PreserveUnknownFields
type EndpointAllocation struct {
	// uid is the pod's.
	UID string `json:"uid"`
	// node is the pod's.
	Node string `json:"node"`
	// ips are what each interface of the pod has.
	// +optional
	IPs []EndpointInterface `json:"ips,omitempty"`
}

// EndpointInterface is what one interface has.
//
// +kubebuilder:pruning:PreserveUnknownFields
type EndpointInterface struct {
	// interface is its name in the pod.
	Interface string `json:"interface"`
	// ipv4 is an address with its prefix length.
	// +optional
	IPv4 *string `json:"ipv4,omitempty"`
	// ipv6 is an address with its prefix length.
	// +optional
	IPv6 *string `json:"ipv6,omitempty"`
	// ipv4Pool is the pool that ipv4 is of.
	// +optional
	IPv4Pool *string `json:"ipv4Pool,omitempty"`
	// ipv6Pool is the pool that ipv6 is of.
	// +optional
	IPv6Pool *string `json:"ipv6Pool,omitempty"`
	// vlan of the interface, 0 for none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +optional
	VLAN *int64 `json:"vlan,omitempty"`
	// ipv4Gateway is the gateway of ipv4.
	// +optional
	IPv4Gateway *string `json:"ipv4Gateway,omitempty"`
	// ipv6Gateway is the gateway of ipv6.
	// +optional
	IPv6Gateway *string `json:"ipv6Gateway,omitempty"`
	// cleanGateway says that the interface has no default route.
	// +optional
	CleanGateway *bool `json:"cleanGateway,omitempty"`
	// routes beside that over the gateway.
	// +optional
	Routes []Route `json:"routes,omitempty"`
	// mac is the MAC address of the interface.
	// +optional
	MAC *string `json:"mac,omitempty"`
}

// SpiderEndpointList is a list of endpoints.
//
// +kubebuilder:object:root=true
type SpiderEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SpiderEndpoint `json:"items"`
}
