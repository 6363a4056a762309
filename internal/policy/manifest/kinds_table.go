package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	sriovv1 "railhead/api/sriovnetwork/v1"
)

// kinds are the kinds that are decoded.
var kinds = []struct {
	version schema.GroupVersion
	kind    string
	empty   func() Object
}{
	{v2beta1.GroupVersion, "SpiderIPPool", func() Object { return &v2beta1.SpiderIPPool{} }},
	{v2beta1.GroupVersion, "SpiderSubnet", func() Object { return &v2beta1.SpiderSubnet{} }},
	{v2beta1.GroupVersion, "SpiderReservedIP", func() Object { return &v2beta1.SpiderReservedIP{} }},
	{v2beta1.GroupVersion, "SpiderEndpoint", func() Object { return &v2beta1.SpiderEndpoint{} }},
	{v2beta1.GroupVersion, "SpiderCoordinator", func() Object { return &v2beta1.SpiderCoordinator{} }},
	{v2beta1.GroupVersion, "SpiderMultusConfig", func() Object { return &v2beta1.SpiderMultusConfig{} }},
	{cniv1.GroupVersion, "NetworkAttachmentDefinition", func() Object { return &cniv1.NetworkAttachmentDefinition{} }},
	{sriovv1.GroupVersion, "SriovNetworkNodePolicy", func() Object { return &sriovv1.SriovNetworkNodePolicy{} }},
	{v1alpha1.GroupVersion, "PoolLedger", func() Object { return &v1alpha1.PoolLedger{} }},
	{v1alpha1.GroupVersion, "AddressLease", func() Object { return &v1alpha1.AddressLease{} }},
}
