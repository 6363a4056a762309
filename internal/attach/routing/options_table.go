package routing

// elementKeys are what may stand in a chain's coordinator: of the
// SpiderCoordinator, of the plugin of Spiderpool, and of every CNI plugin. The
// latter two have no effect here but for type and the CIDRs.
var elementKeys = []string{
	"mode", "tunePodRoutes", "hijackCIDR", "policyRoutes", "podDefaultRouteNic", "podMACPrefix",
	"hostRuleTable", "podRPFilter", "txQueueLen", "vethLinkAddress", "vethMTU",
	"detectIPConflict", "detectGateway", "detectOptions", "overlayPodCIDR", "serviceCIDR",
	"podCIDRType", "hostRPFilter", "multusNicPrefix", "podDefaultCniNic", "logOptions",
	"type", "name", "cniVersion", "prevResult", "runtimeConfig", "capabilities", "args", "ipam", "dns",
}
