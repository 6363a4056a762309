// Package npwg says what a pod's network annotations and its
// NetworkAttachmentDefinitions mean: which networks are attached, in which
// order, by which chain of CNI plugins, with which device, and what is written
// into the pod's status. It reads no API, no file and no kernel: callers give
// values and get values.
//
// A pod whose annotations are wrong is refused, where the standard would ignore
// them: a pod that silently has no rails is worse than one that does not start.
//
// Source: Kubernetes Network Custom Resource Definition De-facto Standard v1.3;
// device information specification 1.1.0; CNI specification 1.1; what Multus and
// the network-attachment-definition client add to them.
package npwg
