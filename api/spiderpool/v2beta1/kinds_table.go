package v2beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of all kinds here.
var GroupVersion = schema.GroupVersion{Group: "spiderpool.spidernet.io", Version: "v2beta1"}

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&SpiderIPPool{}, &SpiderIPPoolList{},
		&SpiderSubnet{}, &SpiderSubnetList{},
		&SpiderReservedIP{}, &SpiderReservedIPList{},
		&SpiderEndpoint{}, &SpiderEndpointList{},
		&SpiderCoordinator{}, &SpiderCoordinatorList{},
		&SpiderMultusConfig{}, &SpiderMultusConfigList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
