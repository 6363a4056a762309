package v1

// Bridge is the software bridge that a NIC's uplink is put into.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Bridge struct {
	// ovs is a bridge of Open vSwitch.
	// +optional
	OVS *OVSBridge `json:"ovs,omitempty"`
}

// OVSBridge is a bridge of Open vSwitch and its uplink.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OVSBridge struct {
	// bridge is what the bridge itself is like.
	// +optional
	Bridge *OVSBridgeOptions `json:"bridge,omitempty"`
	// uplink is the NIC's port in the bridge.
	// +optional
	Uplink *OVSUplink `json:"uplink,omitempty"`
}

// OVSBridgeOptions are columns of the table Bridge of Open vSwitch.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OVSBridgeOptions struct {
	// datapathType is "system" for the kernel's, or "netdev" for user space.
	// +optional
	DatapathType *string `json:"datapathType,omitempty"`
	// externalIDs are keys and values for other programs.
	// +optional
	ExternalIDs map[string]string `json:"externalIDs,omitempty"`
	// otherConfig are further settings of the bridge.
	// +optional
	OtherConfig map[string]string `json:"otherConfig,omitempty"`
	// failMode is what the bridge does without its controller: secure or standalone.
	// +kubebuilder:validation:Enum=secure;standalone
	// +optional
	FailMode *string `json:"failMode,omitempty"`
}

// OVSUplink is the port of a NIC in its bridge.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OVSUplink struct {
	// interface is what the port's interface is like.
	// +optional
	Interface *OVSInterface `json:"interface,omitempty"`
}

// OVSInterface is columns of the table Interface of Open vSwitch.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OVSInterface struct {
	// type of the interface, such as "dpdk"; absent, it is the kernel's.
	// +optional
	Type *string `json:"type,omitempty"`
	// options depend on the type.
	// +optional
	Options map[string]string `json:"options,omitempty"`
	// externalIDs are keys and values for other programs.
	// +optional
	ExternalIDs map[string]string `json:"externalIDs,omitempty"`
	// otherConfig are further settings of the interface.
	// +optional
	OtherConfig map[string]string `json:"otherConfig,omitempty"`
	// mtuRequest is the MTU that Open vSwitch gives the interface.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MTURequest *int `json:"mtuRequest,omitempty"`
}
