package v2beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpiderMultusConfig is a network that pods can ask for. The controller makes a
// NetworkAttachmentDefinition of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=spidermultusconfigs,scope=Namespaced,shortName=smc,categories=spiderpool
// +kubebuilder:subresource:status
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="TYPE",type=string,JSONPath=".spec.cniType"
// +kubebuilder:printcolumn:name="NETWORK",type=string,JSONPath=".status.networkAttachmentDefinition"
// +kubebuilder:printcolumn:name="RESOURCE",type=string,JSONPath=".status.resourceName"
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
type SpiderMultusConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the network: its type, the block of that type and no other.
	Spec MultusConfigSpec `json:"spec,omitempty"`
	// status is what became of the network.
	Status MultusConfigStatus `json:"status,omitempty"`
}

// CNIType says which block of a MultusConfigSpec counts.
type CNIType = string

// The types of networks.
const (
	CNIMacvlan CNIType = "macvlan"
	CNIIPvlan  CNIType = "ipvlan"
	CNIVlan    CNIType = "vlan"
	CNISRIOV   CNIType = "sriov"
	CNIIBSRIOV CNIType = "ib-sriov"
	CNIIPoIB   CNIType = "ipoib"
	CNIOVS     CNIType = "ovs"
	CNICustom  CNIType = "custom"
)

// MultusConfigSpec is what a user writes of a network: its type, the block of
// that type and no other.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MultusConfigSpec struct {
	// cniType is macvlan, ipvlan, vlan, sriov, ib-sriov, ipoib, ovs or custom.
	// +kubebuilder:validation:Enum=macvlan;ipvlan;vlan;sriov;ib-sriov;ipoib;ovs;custom
	// +kubebuilder:default=custom
	// +optional
	CNIType *CNIType `json:"cniType,omitempty"`

	// macvlan is the block of type macvlan: an interface of its own on an Ethernet netdev.
	// +optional
	Macvlan *MacvlanSpec `json:"macvlan,omitempty"`
	// ipvlan is the block of type ipvlan: an interface that has the MAC address of its netdev.
	// +optional
	IPvlan *IPvlanSpec `json:"ipvlan,omitempty"`
	// vlan is the block of type vlan: a VLAN device on an Ethernet netdev.
	// +optional
	Vlan *VlanSpec `json:"vlan,omitempty"`
	// sriov is the block of type sriov: a VF of an Ethernet NIC.
	// +optional
	SRIOV *SRIOVSpec `json:"sriov,omitempty"`
	// ibsriov is the block of type ib-sriov: a VF of an InfiniBand HCA.
	// +optional
	IBSRIOV *IBSRIOVSpec `json:"ibsriov,omitempty"`
	// ipoib is the block of type ipoib: an interface on an IPoIB netdev.
	// +optional
	IPoIB *IPoIBSpec `json:"ipoib,omitempty"`
	// ovs is the block of type ovs: a port of an Open vSwitch bridge.
	// +optional
	OVS *OVSSpec `json:"ovs,omitempty"`

	// customCNI is a CNI configuration or list of plugins as JSON. Empty, it is looked up by name on the node.
	// +optional
	CustomCNI *string `json:"customCNI,omitempty"`

	// chainCNIJsonData are CNI plugins as JSON, put behind the main one in this order.
	// +optional
	ChainCNIJSONData []string `json:"chainCNIJsonData,omitempty"`

	// enableCoordinator has the pod's routes tuned; not for custom.
	// +kubebuilder:default=true
	// +optional
	EnableCoordinator *bool `json:"enableCoordinator,omitempty"`

	// coordinator is what this network does otherwise than the cluster's SpiderCoordinator.
	// +optional
	Coordinator *CoordinatorSpec `json:"coordinator,omitempty"`

	// disableIPAM gives the interface no addresses.
	// +kubebuilder:default=false
	// +optional
	DisableIPAM *bool `json:"disableIPAM,omitempty"`
}

// MultusConfigStatus is what became of a network.
type MultusConfigStatus struct {
	// networkAttachmentDefinition that was made, in the same namespace.
	// +optional
	NetworkAttachmentDefinition string `json:"networkAttachmentDefinition,omitempty"`
	// resourceName that pods on this network ask for.
	// +optional
	ResourceName string `json:"resourceName,omitempty"`
	// conditions are Ready, and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SpiderMultusConfigList is a list of networks.
//
// +kubebuilder:object:root=true
type SpiderMultusConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SpiderMultusConfig `json:"items"`
}
