package npwg

// request is a key of the selection annotation that some plugin must be able to
// do, by the capability that the plugin declares.
type request struct{ key, capability string }

// requests are the keys that the standard wants checked.
var requests = []request{
	{"ips", CapabilityIPs},
	{"mac", CapabilityMAC},
	{"infiniband-guid", CapabilityInfinibandGUID},
	{"portMappings", CapabilityPortMappings},
	{"bandwidth", CapabilityBandwidth},
}

// native are the types of plugins that are not run but done by the agent itself,
// with what it does of itself for them, declared or not. Addresses are those of
// the IPAM, and have a row in nativeIPAM.
var native = map[string][]string{
	"bond":        nil,
	"coordinator": nil,
	"host-device": nil,
	"ib-sriov":    {CapabilityInfinibandGUID},
	"ifacer":      nil,
	"ipoib":       nil, // shares its master's hardware address
	"ipvlan":      nil, // shares its master's MAC
	"macvlan":     {CapabilityMAC},
	"rdma":        nil,
	"spiderpool":  nil,
	"sriov":       {CapabilityMAC},
	"tuning":      {CapabilityMAC},
	"vlan":        nil, // as the reference plugin
}

// nativeIPAM are the types of IPAM that the agent answers itself.
var nativeIPAM = map[string][]string{
	"spiderpool": {CapabilityIPs},
}

// needsDevice are the types whose interface is a device that the kubelet allocates.
var needsDevice = map[string]bool{"ib-sriov": true, "sriov": true}
