// Package v1 holds the objects of sriovnetwork.openshift.io by which users say
// which NICs have VFs, and which resource those are. It has fields, defaults
// and what the API server itself can check, in CEL where a rule spans fields.
//
// All types keep unknown fields, so that they can be refused by name; the API
// server would drop them.
//
// Source: reference fields of the SR-IOV network operator 1.6, spec/002.
//
// +groupName=sriovnetwork.openshift.io
// +kubebuilder:object:generate=true
package v1
