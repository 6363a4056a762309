// Package v2beta1 holds the objects that users of spiderpool.spidernet.io write:
// pools, subnets and reservations of addresses, networks and how pods route over
// them, and the addresses of each pod. It has fields, defaults and what the API
// server itself can check; rules and their words are in internal/policy.
//
// Where a field was renamed, the old spelling stands beside the new one and
// means the same. All types keep unknown fields, so that the admission webhook
// sees them and can refuse them by name; the API server would drop them.
//
// Source: reference fields of Spiderpool 0.8 to 1.2, spec/002 and spec/003.
//
// +groupName=spiderpool.spidernet.io
// +kubebuilder:object:generate=true
package v2beta1
