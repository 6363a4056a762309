package v2beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SpiderCoordinator is how pods route, for all networks that do not say
// otherwise. The cluster's is named "default".
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=spidercoordinators,scope=Cluster,shortName=scc,categories=spiderpool
// +kubebuilder:subresource:status
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=".spec.mode"
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="POD-CIDR",type=string,JSONPath=".status.overlayPodCIDR"
// +kubebuilder:printcolumn:name="SERVICE-CIDR",type=string,JSONPath=".status.serviceCIDR"
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=".status.reason",priority=10
type SpiderCoordinator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how pods route.
	Spec CoordinatorSpec `json:"spec,omitempty"`
	// status is what the controller found out about the cluster.
	Status CoordinatorStatus `json:"status,omitempty"`
}

// Modes of CoordinatorSpec.Mode.
const (
	ModeAuto     = "auto"     // underlay for eth0 and below a veth0, else overlay
	ModeUnderlay = "underlay" // the pod's first interface is a rail
	ModeOverlay  = "overlay"  // the pod's first interface is the cluster network's
	ModeDisabled = "disabled" // leave routes as they are
)

// Sources of the pods' CIDRs, CoordinatorSpec.PodCIDRType.
const (
	PodCIDRAuto    = "auto"    // what the cluster looks like
	PodCIDRCluster = "cluster" // kubeadm, the controller manager, the nodes
	PodCIDRCalico  = "calico"
	PodCIDRCilium  = "cilium"
	PodCIDRNone    = "none"
)

// CoordinatorSpec is how pods route. It is the spec of a SpiderCoordinator, and
// the coordinator block of a SpiderMultusConfig, whose fields win.
//
// +kubebuilder:pruning:PreserveUnknownFields
type CoordinatorSpec struct {
	// mode is auto, underlay, overlay or disabled.
	// +kubebuilder:validation:Enum=auto;underlay;overlay;disabled
	// +optional
	Mode *string `json:"mode,omitempty"`

	// podCIDRType is where the pods' CIDRs are looked up: auto, cluster, calico, cilium or none.
	// +kubebuilder:validation:Enum=auto;cluster;calico;cilium;none
	// +optional
	PodCIDRType *string `json:"podCIDRType,omitempty"`

	// tunePodRoutes gives each interface a routing table of its own, so that answers leave where questions came in.
	// +optional
	TunePodRoutes *bool `json:"tunePodRoutes,omitempty"`

	// hijackCIDR are further destinations (CIDRs or addresses) reached over the node.
	// +optional
	HijackCIDR []string `json:"hijackCIDR,omitempty"`

	// policyRoutes are further routes of the interface's table.
	// +optional
	PolicyRoutes []Route `json:"policyRoutes,omitempty"`

	// podDefaultRouteNIC is the interface with the pod's default route, by default the first.
	// +optional
	PodDefaultRouteNIC *string `json:"podDefaultRouteNIC,omitempty"`

	// podMACPrefix is the first two bytes of MAC addresses ("0a:1b"); the other four are the pod's address.
	// +optional
	PodMACPrefix *string `json:"podMACPrefix,omitempty"`

	// hostRuleTable is the node's routing table of routes to pods.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HostRuleTable *int `json:"hostRuleTable,omitempty"`

	// podRPFilter is rp_filter in the pod: 0, 1, 2, or below 0 to leave it.
	// +kubebuilder:validation:Maximum=2
	// +optional
	PodRPFilter *int `json:"podRPFilter,omitempty"`

	// hostRPFilter was rp_filter on the node. It is kept and has no effect.
	// +optional
	HostRPFilter *int `json:"hostRPFilter,omitempty"`

	// txQueueLen is the transmit queue's length of the pod's interface, 0 to leave it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TxQueueLen *int `json:"txQueueLen,omitempty"`

	// vethLinkAddress is an IPv4 address of the pod's veth0, such as a link-local one.
	// +optional
	VethLinkAddress *string `json:"vethLinkAddress,omitempty"`

	// vethMTU is the MTU of the veth pair between pod and node.
	// +kubebuilder:validation:Minimum=1
	// +optional
	VethMTU *int `json:"vethMTU,omitempty"`

	// detectIPConflict asks the wire whether another has the pod's address.
	// +optional
	DetectIPConflict *bool `json:"detectIPConflict,omitempty"`

	// detectGateway wants the gateway to answer before the pod starts.
	// +optional
	DetectGateway *bool `json:"detectGateway,omitempty"`

	// detectOptions bound both detections.
	// +optional
	DetectOptions *DetectOptions `json:"detectOptions,omitempty"`
}

// DetectOptions bound how long addresses and gateways are asked for.
//
// +kubebuilder:pruning:PreserveUnknownFields
type DetectOptions struct {
	// retries is how often is asked.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Retries *int `json:"retries,omitempty"`
	// timeout is how long one answer may take, such as "100ms".
	// +optional
	Timeout *string `json:"timeout,omitempty"`
	// interval is the time between two questions, such as "10ms".
	// +optional
	Interval *string `json:"interval,omitempty"`
}

// Phases of CoordinatorStatus.Phase.
const (
	PhaseSynced   = "Synced"
	PhaseNotReady = "NotReady"
)

// CoordinatorStatus is what the controller found out about the cluster.
type CoordinatorStatus struct {
	// phase is Synced, or NotReady with a reason.
	// +kubebuilder:validation:Enum=Synced;NotReady
	// +optional
	Phase string `json:"phase,omitempty"`
	// reason is why the phase is NotReady, empty otherwise.
	// +optional
	Reason string `json:"reason,omitempty"`
	// overlayPodCIDR are the CIDRs of pods on the cluster network.
	// +optional
	OverlayPodCIDR []string `json:"overlayPodCIDR,omitempty"`
	// serviceCIDR are the CIDRs of Services.
	// +optional
	ServiceCIDR []string `json:"serviceCIDR,omitempty"`
	// conditions are Ready, and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SpiderCoordinatorList is a list of coordinators.
//
// +kubebuilder:object:root=true
type SpiderCoordinatorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SpiderCoordinator `json:"items"`
}
