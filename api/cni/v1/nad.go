// Package v1 holds the NetworkAttachmentDefinition of k8s.cni.cncf.io: a CNI
// configuration that pods can ask for by name.
//
// Source: Kubernetes Network Custom Resource Definition De-facto Standard v1.3.
//
// +groupName=k8s.cni.cncf.io
// +kubebuilder:object:generate=true
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Annotations of the standard and of Multus.
const (
	// AnnotationNetworks of a pod lists networks: "namespace/name@interface,…" or a JSON list.
	AnnotationNetworks = "k8s.v1.cni.cncf.io/networks"
	// AnnotationDefaultNetwork of a pod names the network of its eth0.
	AnnotationDefaultNetwork = "v1.multus-cni.io/default-network"
	// AnnotationResourceName of a NetworkAttachmentDefinition is the resource whose devices it attaches.
	AnnotationResourceName = "k8s.v1.cni.cncf.io/resourceName"
)

// NetworkAttachmentDefinition is a network that pods can ask for.
//
// +kubebuilder:object:root=true
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:resource:path=network-attachment-definitions,scope=Namespaced,shortName=net-attach-def;nad,singular=network-attachment-definition
type NetworkAttachmentDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the network's configuration.
	Spec NetworkAttachmentDefinitionSpec `json:"spec,omitempty"`
}

// NetworkAttachmentDefinitionSpec is the network's configuration.
//
// +kubebuilder:pruning:PreserveUnknownFields
type NetworkAttachmentDefinitionSpec struct {
	// config is a CNI configuration or list of plugins as JSON. Absent, it is looked up by name on the node.
	// +optional
	Config string `json:"config,omitempty"`
}

// NetworkAttachmentDefinitionList is a list of networks.
//
// +kubebuilder:object:root=true
type NetworkAttachmentDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NetworkAttachmentDefinition `json:"items"`
}
