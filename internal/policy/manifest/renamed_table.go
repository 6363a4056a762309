package manifest

import (
	"reflect"

	"railhead/api/spiderpool/v2beta1"
)

// renamed are names that are written for fields which are called otherwise, and
// are too far from them to be found by their letters.
var renamed = map[reflect.Type]map[string]string{
	reflect.TypeFor[v2beta1.IPPoolSpec]():       {"cidr": "subnet", "gw": "gateway", "ranges": "ips"},
	reflect.TypeFor[v2beta1.SubnetSpec]():       {"cidr": "subnet", "gw": "gateway", "ranges": "ips"},
	reflect.TypeFor[v2beta1.Route]():            {"destination": "dst", "to": "dst", "gateway": "gw", "via": "gw"},
	reflect.TypeFor[v2beta1.MultusConfigSpec](): {"ib-sriov": "ibsriov", "type": "cniType", "chain": "chainCNIJsonData"},
	reflect.TypeFor[v2beta1.MacvlanSpec]():      {"vlan": "vlanID", "resourceName": "rdmaResourceName"},
	reflect.TypeFor[v2beta1.IPvlanSpec]():       {"vlan": "vlanID", "resourceName": "rdmaResourceName"},
	reflect.TypeFor[v2beta1.VlanSpec]():         {"vlan": "vlanID", "mode": "vlanMode", "resourceName": "rdmaResourceName"},
	reflect.TypeFor[v2beta1.SRIOVSpec]():        {"vlan": "vlanID", "rdmaResourceName": "resourceName"},
	reflect.TypeFor[v2beta1.IBSRIOVSpec]():      {"partition": "pkey", "rdmaResourceName": "resourceName"},
	reflect.TypeFor[v2beta1.OVSSpec]():          {"vlanID": "vlan"},
	reflect.TypeFor[v2beta1.CoordinatorSpec]():  {"rpFilter": "podRPFilter", "macPrefix": "podMACPrefix"},
}
