package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SriovNetworkNodePolicy is how many VFs some NICs of some nodes have, what
// those are like, and the resource by which pods ask for them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sriovnetworknodepolicies,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="RESOURCE",type=string,JSONPath=".spec.resourceName"
// +kubebuilder:printcolumn:name="VFS",type=integer,JSONPath=".spec.numVfs"
// +kubebuilder:printcolumn:name="PRIORITY",type=integer,JSONPath=".spec.priority"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=".metadata.creationTimestamp"
type SriovNetworkNodePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is which NICs have VFs, and what those are like.
	Spec NodePolicySpec `json:"spec"`
	// status is what became of the policy.
	Status NodePolicyStatus `json:"status,omitempty"`
}

// Drivers of VFs, NodePolicySpec.DeviceType.
const (
	DeviceNetdevice = "netdevice" // the NIC's own
	DeviceVFIO      = "vfio-pci"  // user space
)

// Modes of the embedded switch, NodePolicySpec.ESwitchMode.
const (
	ESwitchLegacy    = "legacy"
	ESwitchSwitchdev = "switchdev"
)

// NodePolicySpec is what a user writes of VFs.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!(has(self.deviceType) && self.deviceType == 'vfio-pci' && has(self.isRdma) && self.isRdma)",fieldPath=".isRdma",message="vfio-pci takes the VF from the driver that RDMA needs: want deviceType netdevice, or isRdma false"
// +kubebuilder:validation:XValidation:rule="!(has(self.eSwitchMode) && self.eSwitchMode == 'switchdev' && has(self.linkType) && self.linkType in ['ib', 'IB'])",fieldPath=".eSwitchMode",message="switchdev is for Ethernet links: want legacy, or linkType eth"
// +kubebuilder:validation:XValidation:rule="!has(self.vdpaType) || has(self.eSwitchMode) && self.eSwitchMode == 'switchdev' && (!has(self.deviceType) || self.deviceType == 'netdevice')",fieldPath=".vdpaType",message="vDPA needs eSwitchMode switchdev and deviceType netdevice"
// +kubebuilder:validation:XValidation:rule="!has(self.bridge) || has(self.eSwitchMode) && self.eSwitchMode == 'switchdev' && !(has(self.externallyManaged) && self.externallyManaged)",fieldPath=".bridge",message="a bridge needs eSwitchMode switchdev and VFs that are not externallyManaged"
type NodePolicySpec struct {
	// resourceName is the name of the resource behind its prefix: pods ask for "prefix/resourceName".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([a-zA-Z0-9_-]*[a-zA-Z0-9])?$`
	ResourceName string `json:"resourceName"`

	// nodeSelector is the labels of the nodes that the policy is for.
	NodeSelector map[string]string `json:"nodeSelector"`

	// nicSelector selects NICs of those nodes.
	NICSelector NICSelector `json:"nicSelector"`

	// priority decides between policies for one NIC: 0 is the highest, 99 the lowest.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:default=99
	// +optional
	Priority *int `json:"priority,omitempty"`

	// numVfs is how many VFs each of the NICs has.
	// +kubebuilder:validation:Minimum=0
	NumVFs int `json:"numVfs"`

	// mtu of the NIC and its VFs; absent, it is left.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MTU *int `json:"mtu,omitempty"`

	// deviceType is netdevice for the NIC's own driver, or vfio-pci for user space.
	// +kubebuilder:validation:Enum=netdevice;vfio-pci
	// +kubebuilder:default=netdevice
	// +optional
	DeviceType *string `json:"deviceType,omitempty"`

	// isRdma gives pods the VF's RDMA devices too. On InfiniBand they always have them.
	// +kubebuilder:default=false
	// +optional
	IsRDMA *bool `json:"isRdma,omitempty"`

	// needVhostNet gives pods /dev/vhost-net too.
	// +kubebuilder:default=false
	// +optional
	NeedVhostNet *bool `json:"needVhostNet,omitempty"`

	// excludeTopology keeps the NIC's NUMA node from the kubelet, so that pods on any may have its VFs.
	// +kubebuilder:default=false
	// +optional
	ExcludeTopology *bool `json:"excludeTopology,omitempty"`

	// externallyManaged says that somebody else makes the VFs: they are used, and never made or removed.
	// +kubebuilder:default=false
	// +optional
	ExternallyManaged *bool `json:"externallyManaged,omitempty"`

	// linkType is eth or ib; absent, it is left.
	// +kubebuilder:validation:Enum=eth;ETH;ib;IB
	// +optional
	LinkType *string `json:"linkType,omitempty"`

	// eSwitchMode is legacy or switchdev; absent, it is legacy.
	// +kubebuilder:validation:Enum=legacy;switchdev
	// +optional
	ESwitchMode *string `json:"eSwitchMode,omitempty"`

	// vdpaType makes vDPA devices of the VFs: virtio or vhost.
	// +kubebuilder:validation:Enum=virtio;vhost
	// +optional
	VDPAType *string `json:"vdpaType,omitempty"`

	// bridge puts the NIC into a software bridge of its own.
	// +optional
	Bridge *Bridge `json:"bridge,omitempty"`
}

// NICSelector selects NICs: those that have all that is said.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="has(self.vendor) || has(self.deviceID) || has(self.netFilter) || has(self.rootDevices) && size(self.rootDevices) > 0 || has(self.pfNames) && size(self.pfNames) > 0",message="selects no NIC: want at least one of vendor, deviceID, rootDevices, pfNames and netFilter"
type NICSelector struct {
	// vendor is the PCI vendor ID in hexadecimal, such as "15b3".
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{4}$`
	// +optional
	Vendor *string `json:"vendor,omitempty"`
	// deviceID is the PCI device ID of the PF in hexadecimal, such as "1017".
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{4}$`
	// +optional
	DeviceID *string `json:"deviceID,omitempty"`
	// rootDevices are PCI addresses of PFs, such as "0000:af:00.0".
	// +optional
	RootDevices []string `json:"rootDevices,omitempty"`
	// pfNames are netdevs of PFs, or some of their VFs: "ens1f0", "ens1f0#0-3".
	// +optional
	PFNames []string `json:"pfNames,omitempty"`
	// netFilter is a network that the NIC is on, as a cloud's metadata names it: "openstack/NetworkID:UUID".
	// +optional
	NetFilter *string `json:"netFilter,omitempty"`
}

// NodePolicyStatus is what became of a policy.
type NodePolicyStatus struct {
	// conditions are Ready, and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SriovNetworkNodePolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type SriovNetworkNodePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SriovNetworkNodePolicy `json:"items"`
}
