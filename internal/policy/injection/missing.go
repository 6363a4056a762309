package injection

import (
	"fmt"
	"strings"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// missing says what a network lacks to be injected by an annotation key, "" if
// nothing. Pods on a network for RDMA need its resource, or the kubelet gives them
// no device, and without pools no address; other networks need pools where they
// have a resource.
func missing(key string, n policy.Network) string {
	if n.Broken != "" {
		return "breaks rules: " + n.Broken
	}
	block := resourceField(n.Type)
	if block == "" {
		return fmt.Sprintf("a network of type %s cannot be injected: want macvlan, ipvlan, vlan, sriov, ib-sriov or ipoib", n.Type)
	}
	needsResource := key == v2beta1.AnnotationInjectRDMA && n.Type != v2beta1.CNIIPoIB
	needsPools := key == v2beta1.AnnotationInjectRDMA || n.Resource != ""
	var lacks []string
	if needsResource && n.Resource == "" {
		lacks = append(lacks, "has no resource: set "+block)
	}
	if needsPools && len(n.Pools.IPv4) == 0 && len(n.Pools.IPv6) == 0 {
		lacks = append(lacks, fmt.Sprintf("has no pools: set spec.%s.ippools", blockOf(n.Type)))
	}
	return strings.Join(lacks, "; ")
}

// resourceField is the field that names the resource of a type, "" for types that
// cannot be injected.
func resourceField(t v2beta1.CNIType) string {
	switch t {
	case v2beta1.CNIMacvlan, v2beta1.CNIIPvlan, v2beta1.CNIVlan:
		return "spec." + t + ".rdmaResourceName"
	case v2beta1.CNISRIOV, v2beta1.CNIIBSRIOV:
		return "spec." + blockOf(t) + ".resourceName"
	case v2beta1.CNIIPoIB:
		return "spec.ipoib.master"
	default:
		return ""
	}
}

// blockOf is the field of spec that a type's settings are in.
func blockOf(t v2beta1.CNIType) string { return strings.ReplaceAll(t, "-", "") }
