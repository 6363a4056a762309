package api

// names is how kubectl names and prints a kind.
type names struct {
	versions          []string
	scope             string
	short, categories []string
	status            bool
	columns, wide     []string
}

// Columns that several kinds have.
const (
	version = "VERSION .spec.ipVersion"
	subnet  = "SUBNET .spec.subnet"
	used    = "ALLOCATED-IP-COUNT .status.allocatedIPCount"
	total   = "TOTAL-IP-COUNT .status.totalIPCount"
	ready   = "READY .status.conditions[?(@.type=='Ready')].status"
	age     = "AGE .metadata.creationTimestamp"
)

// wantNames has what the reference has, in its order, and our own columns behind.
var wantNames = map[string]names{
	"spiderippools.spiderpool.spidernet.io": {
		versions: []string{"v2beta1"}, scope: "Cluster", short: []string{"sp"}, categories: []string{"spiderpool"}, status: true,
		columns: []string{version, subnet, used, total, "DEFAULT .spec.default", ready},
		wide: []string{
			"DISABLE .spec.disable", "NODENAME .spec.nodeName", "MULTUSNAME .spec.multusName",
			`APP-NAMESPACE .spec.podAffinity.matchLabels.ipam\.spidernet\.io/app-namespace`,
		},
	},
	"spidersubnets.spiderpool.spidernet.io": {
		versions: []string{"v2beta1"}, scope: "Cluster", short: []string{"ss"}, categories: []string{"spiderpool"}, status: true,
		columns: []string{version, subnet, used, total, ready},
	},
	"spiderreservedips.spiderpool.spidernet.io": {
		versions: []string{"v2beta1"}, scope: "Cluster", short: []string{"sr"}, categories: []string{"spiderpool"},
		columns: []string{version},
	},
	"spiderendpoints.spiderpool.spidernet.io": {
		versions: []string{"v2beta1"}, scope: "Namespaced", short: []string{"se"}, categories: []string{"spiderpool"},
		columns: []string{
			"INTERFACE .status.current.ips[0].interface", "IPV4POOL .status.current.ips[0].ipv4Pool", "IPV4 .status.current.ips[0].ipv4",
			"IPV6POOL .status.current.ips[0].ipv6Pool", "IPV6 .status.current.ips[0].ipv6", "NODE .status.current.node",
		},
	},
	"spidercoordinators.spiderpool.spidernet.io": {
		versions: []string{"v2beta1"}, scope: "Cluster", short: []string{"scc"}, categories: []string{"spiderpool"}, status: true,
		columns: []string{"MODE .spec.mode", "PHASE .status.phase", "POD-CIDR .status.overlayPodCIDR", "SERVICE-CIDR .status.serviceCIDR"},
		wide:    []string{"REASON .status.reason"},
	},
	"spidermultusconfigs.spiderpool.spidernet.io": {
		versions: []string{"v2beta1"}, scope: "Namespaced", short: []string{"smc"}, categories: []string{"spiderpool"}, status: true,
		columns: []string{"TYPE .spec.cniType", "NETWORK .status.networkAttachmentDefinition", "RESOURCE .status.resourceName", ready},
	},
	"network-attachment-definitions.k8s.cni.cncf.io": {
		versions: []string{"v1"}, scope: "Namespaced", short: []string{"net-attach-def", "nad"},
	},
	"sriovnetworknodepolicies.sriovnetwork.openshift.io": {
		versions: []string{"v1"}, scope: "Namespaced", status: true,
		columns: []string{"RESOURCE .spec.resourceName", "VFS .spec.numVfs", "PRIORITY .spec.priority", age},
	},
	"poolledgers.railhead.io": {
		versions: []string{"v1alpha1"}, scope: "Cluster", categories: []string{"railhead"},
		columns: []string{"POOL .spec.pool", "PART .spec.part", "EPOCH .spec.epoch", age},
	},
	"addressleases.railhead.io": {
		versions: []string{"v1alpha1"}, scope: "Cluster", categories: []string{"railhead"}, status: true,
		columns: []string{"NODE-UID .spec.nodeUID", "REASON .status.reason", age},
	},
}
