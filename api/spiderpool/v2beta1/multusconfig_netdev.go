package v2beta1

// NetworkPools are the pools that a network's addresses come from.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkPools struct {
	// ipv4 are names of pools, with the wildcards * ? [ ], tried in order.
	// +optional
	IPv4 []string `json:"ipv4,omitempty"`
	// ipv6 are names of pools, with the wildcards * ? [ ], tried in order.
	// +optional
	IPv6 []string `json:"ipv6,omitempty"`
	// matchMasterSubnet wants pools of the subnet that the PF has an address of. Only for sriov.
	// +kubebuilder:default=false
	// +optional
	MatchMasterSubnet *bool `json:"matchMasterSubnet,omitempty"`
}

// Bond is a bond of masters that is made on the node if it is not there.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Bond struct {
	// name of the bond on the node.
	Name string `json:"name"`
	// mode is the kernel's bonding mode, 0 to 6.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	Mode int `json:"mode"`
	// options are the kernel's bonding options, as "key=value;key=value".
	// +optional
	Options *string `json:"options,omitempty"`
}

// Parent is the netdevs on the node that an interface stands on.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Parent struct {
	// master are names of netdevs. Two and more need a bond.
	// +kubebuilder:validation:MinItems=1
	Master []string `json:"master"`
	// mtu of the interface, 0 for that of the master.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	MTU *int32 `json:"mtu,omitempty"`
	// vlanID of a VLAN device between master and interface, 0 for none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4094
	// +kubebuilder:default=0
	// +optional
	VLANID *int32 `json:"vlanID,omitempty"`
	// bond that the masters are ports of. Needed if they are several.
	// +optional
	Bond *Bond `json:"bond,omitempty"`
	// enableRdma is a spelling of Spiderpool before 1.0: with false, pods get no RDMA resource.
	// +optional
	EnableRDMA *bool `json:"enableRdma,omitempty"`
	// rdmaResourceName is the resource that injected pods ask for, as "prefix/name".
	// +optional
	RDMAResourceName *string `json:"rdmaResourceName,omitempty"`
	// ippools are the pools that addresses come from; absent, the pod, its namespace or the default pools say.
	// +optional
	IPPools *NetworkPools `json:"ippools,omitempty"`
}

// MacvlanSpec is a macvlan interface in bridge mode.
//
// +kubebuilder:pruning:PreserveUnknownFields
type MacvlanSpec struct {
	Parent `json:",inline"`
}

// IPvlanSpec is an ipvlan interface in L2 mode.
//
// +kubebuilder:pruning:PreserveUnknownFields
type IPvlanSpec struct {
	Parent `json:",inline"`
}

// VlanSpec is a VLAN device of its own a pod.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VlanSpec struct {
	Parent `json:",inline"`
	// vlanMode is manual, or auto for a VLAN that comes with the address.
	// +kubebuilder:validation:Enum=manual;auto
	// +kubebuilder:default=manual
	// +optional
	VLANMode *string `json:"vlanMode,omitempty"`
}
