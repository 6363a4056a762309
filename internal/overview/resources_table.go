package overview

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// Resources that are read.
var (
	ippools   = v2beta1.GroupVersion.WithResource("spiderippools")
	subnets   = v2beta1.GroupVersion.WithResource("spidersubnets")
	reserved  = v2beta1.GroupVersion.WithResource("spiderreservedips")
	endpoints = v2beta1.GroupVersion.WithResource("spiderendpoints")
	configs   = v2beta1.GroupVersion.WithResource("spidermultusconfigs")
	nads      = cniv1.GroupVersion.WithResource("network-attachment-definitions")
	ledgers   = v1alpha1.GroupVersion.WithResource("poolledgers")
	leases    = v1alpha1.GroupVersion.WithResource("addressleases")
	pods      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// isOfCluster has the resources that are in no namespace.
var isOfCluster = map[schema.GroupVersionResource]bool{
	ippools: true, subnets: true, reserved: true, ledgers: true, leases: true, namespaces: true, nodes: true,
}
