package policy

// ConfigMaps that the configuration is read from, by the name that is looked
// for first, and the key in them.
const (
	ConfigMapName    = "spiderpool-conf"
	ConfigMapOldName = "spiderpool-config"
	ConfigMapKey     = "conf.yml"
)

// Config is the configuration of the cluster, key conf.yml of the ConfigMap.
// A key that is left out has its value of DefaultConfig.
type Config struct {
	// Socket is the path of the agent's socket.
	Socket string `json:"ipamUnixSocketPath"`
	// EnableIPv4 and EnableIPv6 are the families that pools may have.
	EnableIPv4 bool `json:"enableIPv4"`
	EnableIPv6 bool `json:"enableIPv6"`
	// StatefulSets and KubeVirt keep the addresses of pods and VMs that come back by name.
	StatefulSets bool `json:"enableStatefulSet"`
	KubeVirt     bool `json:"enableKubevirtStaticIP"`
	// CleanEndpoints removes SpiderEndpoints of pods that are gone.
	CleanEndpoints bool `json:"enableCleanOutdatedEndpoint"`
	// EnableSpiderSubnet has pools belong to the SpiderSubnet of their CIDR.
	EnableSpiderSubnet bool `json:"enableSpiderSubnet"`
	// EnableAutoPool makes pools for applications that ask for them.
	EnableAutoPool bool `json:"enableAutoPoolForApplication"`
	// DetectConflict and DetectGateway ask the wire before a pod starts.
	DetectConflict bool `json:"enableIPConflictDetection"`
	DetectGateway  bool `json:"enableGatewayDetection"`
	// RefuseDeleteInUse refuses to delete pools and subnets in use.
	RefuseDeleteInUse bool `json:"enableValidatingResourcesDeletedWebhook"`
	// ClusterSubnetDefaultFlexibleIPNumber is how many addresses an application's own pool has beyond its replicas.
	ClusterSubnetDefaultFlexibleIPNumber int `json:"clusterSubnetDefaultFlexibleIPNumber"`
	// TuneSysctl sets the node's sysctls for many neighbours.
	TuneSysctl        bool              `json:"tuneSysctlConfig"`
	PodResourceInject PodResourceInject `json:"podResourceInject"`
	Agent             AgentConfig       `json:"agent"`
	IAASNetwork       IAASNetwork       `json:"iaasNetworkProvider"`
}

// PodResourceInject is which pods are given networks and resources by annotation.
type PodResourceInject struct {
	Enabled           bool     `json:"enabled"`
	NamespacesExclude []string `json:"namespacesExclude"`
	NamespacesInclude []string `json:"namespacesInclude"` // empty: all
}

// AgentConfig is what only agents read.
type AgentConfig struct {
	// NetworkResourcePlugin is kept as written; nothing here reads it.
	NetworkResourcePlugin map[string]any `json:"networkResourcePlugin"`
}

// IAASNetwork is an external service that gives addresses.
type IAASNetwork struct {
	ServerURL          string `json:"serverUrl"`
	HTTPRequestTimeout string `json:"httpRequestTimeout"` // a Go duration
}

// DefaultConfig is the configuration of a cluster that says nothing.
func DefaultConfig() Config {
	return Config{
		Socket:                               "/var/run/spidernet/spiderpool.sock",
		EnableIPv4:                           true,
		EnableIPv6:                           true,
		StatefulSets:                         true,
		KubeVirt:                             true,
		EnableSpiderSubnet:                   true,
		EnableAutoPool:                       true,
		DetectConflict:                       true,
		DetectGateway:                        true,
		ClusterSubnetDefaultFlexibleIPNumber: 1,
		TuneSysctl:                           true,
		PodResourceInject: PodResourceInject{
			NamespacesExclude: []string{"kube-system", "spiderpool", "railhead-system", "metallb-system", "istio-system"},
		},
		IAASNetwork: IAASNetwork{HTTPRequestTimeout: "50s"},
	}
}
