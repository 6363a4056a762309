package v2beta1

// SRIOVSpec is a VF of an Ethernet NIC.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SRIOVSpec struct {
	// resourceName is the VFs' resource, as "prefix/name".
	// +kubebuilder:validation:MinLength=1
	ResourceName string `json:"resourceName"`
	// vlanID that the NIC puts the VF into, 0 for none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +kubebuilder:default=0
	// +optional
	VLANID *int32 `json:"vlanID,omitempty"`
	// mtu of the interface, 0 to leave it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	MTU *int32 `json:"mtu,omitempty"`
	// minTxRateMbps is the rate in Mbit/s that the VF may always send at, 0 to promise none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	MinTxRateMbps *int `json:"minTxRateMbps,omitempty"`
	// maxTxRateMbps is the rate in Mbit/s that the VF sends at most, 0 for no limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	MaxTxRateMbps *int `json:"maxTxRateMbps,omitempty"`
	// rdmaIsolation moves the RDMA device into the pod; needs the exclusive mode.
	// +optional
	RDMAIsolation *bool `json:"rdmaIsolation,omitempty"`
	// enableRdma is the spelling of rdmaIsolation before Spiderpool 1.0.
	// +optional
	EnableRDMA *bool `json:"enableRdma,omitempty"`
	// ippools are the pools that addresses come from; absent, the pod, its namespace or the default pools say.
	// +optional
	IPPools *NetworkPools `json:"ippools,omitempty"`
}

// IBSRIOVSpec is a VF of an InfiniBand HCA.
//
// +kubebuilder:pruning:PreserveUnknownFields
type IBSRIOVSpec struct {
	// resourceName is the VFs' resource, as "prefix/name".
	// +kubebuilder:validation:MinLength=1
	ResourceName string `json:"resourceName"`
	// pkey is the partition key, such as "0x8001".
	// +optional
	Pkey *string `json:"pkey,omitempty"`
	// linkState of the VF: auto, enable or disable.
	// +kubebuilder:validation:Enum=auto;enable;disable
	// +kubebuilder:default=enable
	// +optional
	LinkState *string `json:"linkState,omitempty"`
	// rdmaIsolation moves the RDMA device into the pod; needs the exclusive mode.
	// +kubebuilder:default=true
	// +optional
	RDMAIsolation *bool `json:"rdmaIsolation,omitempty"`
	// enableIbKubernetes leaves GUIDs and partitions to ib-kubernetes.
	// +optional
	EnableIBKubernetes *bool `json:"enableIbKubernetes,omitempty"`
	// ibKubernetesEnabled is the spelling of enableIbKubernetes before Spiderpool 1.0.
	// +optional
	IBKubernetesEnabled *bool `json:"ibKubernetesEnabled,omitempty"`
	// ippools are the pools that addresses come from; absent, the pod, its namespace or the default pools say.
	// +optional
	IPPools *NetworkPools `json:"ippools,omitempty"`
}

// IPoIBSpec is an IPoIB interface of its own a pod.
//
// +kubebuilder:pruning:PreserveUnknownFields
type IPoIBSpec struct {
	// master is the IPoIB netdev on the node.
	// +kubebuilder:validation:MinLength=1
	Master string `json:"master"`
	// ippools are the pools that addresses come from; absent, the pod, its namespace or the default pools say.
	// +optional
	IPPools *NetworkPools `json:"ippools,omitempty"`
}

// OVSSpec is a port of an Open vSwitch bridge.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OVSSpec struct {
	// bridge is the name of the bridge on the node.
	// +kubebuilder:validation:MinLength=1
	Bridge string `json:"bridge"`
	// vlan is the VLAN that the port carries untagged, 0 for none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +kubebuilder:default=0
	// +optional
	VLAN *int32 `json:"vlan,omitempty"`
	// trunk is the VLANs that the port carries tagged.
	// +optional
	Trunk []Trunk `json:"trunk,omitempty"`
	// deviceID is the PCI address of a VF that is offloaded to.
	// +optional
	DeviceID *string `json:"deviceID,omitempty"`
	// ippools are the pools that addresses come from; absent, the pod, its namespace or the default pools say.
	// +optional
	IPPools *NetworkPools `json:"ippools,omitempty"`
}

// Trunk is one VLAN of a trunk, or a range of them.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Trunk struct {
	// minID is the first VLAN of a range.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +optional
	MinID *uint `json:"minID,omitempty"`
	// maxID is the last VLAN of a range.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +optional
	MaxID *uint `json:"maxID,omitempty"`
	// id is one VLAN.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +optional
	ID *uint `json:"id,omitempty"`
}
