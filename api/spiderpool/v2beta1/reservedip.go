package v2beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SpiderReservedIP is a set of addresses that no pod gets from any pool. Those
// in use already stay.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=spiderreservedips,scope=Cluster,shortName=sr,categories=spiderpool
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=".spec.ipVersion"
type SpiderReservedIP struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the addresses that no pod gets.
	Spec ReservedIPSpec `json:"spec"`
}

// ReservedIPSpec is what a user writes of reserved addresses.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ipVersion) || has(self.ipVersion) && self.ipVersion == oldSelf.ipVersion",fieldPath=".ipVersion",message="is immutable: delete the reservation and create another"
type ReservedIPSpec struct {
	// ipVersion is 4 or 6, by default that of the first address. Immutable.
	// +kubebuilder:validation:Enum=4;6
	// +optional
	IPVersion *int64 `json:"ipVersion,omitempty"`

	// ips are addresses and ranges "first-last".
	// +optional
	IPs []string `json:"ips,omitempty"`
}

// SpiderReservedIPList is a list of reserved addresses.
//
// +kubebuilder:object:root=true
type SpiderReservedIPList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SpiderReservedIP `json:"items"`
}
