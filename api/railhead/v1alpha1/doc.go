// Package v1alpha1 holds what Railhead's own parts tell each other about
// addresses: which node holds which (PoolLedger), and what a node asks for and
// was granted (AddressLease). Users read them and write none.
//
// +groupName=railhead.io
// +kubebuilder:object:generate=true
package v1alpha1
