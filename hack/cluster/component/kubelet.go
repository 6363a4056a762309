package component

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logs "k8s.io/component-base/logs/api/v1"
	config "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

const kubeletConfig = "/etc/kubernetes/kubelet.yaml"

func kubelet(n plan.Node) box.Service {
	return service(Kubelet,
		"--config="+kubeletConfig,
		"--kubeconfig="+kubeletKubeconfig,
		"--hostname-override="+n.Name,
		"--node-ip="+joined(addresses(n.Host)),
	)
}

// kubeletFiles are the kubelet's settings. They are the defaults but for what
// a machine of namespaces needs, and for speed.
func kubeletFiles(c *plan.Cluster) ([]box.File, error) {
	k := config.KubeletConfiguration{
		TypeMeta:                  metav1.TypeMeta{APIVersion: config.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		Address:                   everywhere(c),
		HealthzBindAddress:        local(c),
		TLSCertFile:               certOf(kubeletPair),
		TLSPrivateKeyFile:         keyOf(kubeletPair),
		Authentication:            config.KubeletAuthentication{X509: config.KubeletX509Authentication{ClientCAFile: caCert}},
		ContainerRuntimeEndpoint:  "unix://" + containerdSocket,
		ClusterDomain:             pki.Domain,
		ClusterDNS:                texts(c.DNS),
		ResolverConfig:            new(""), // the machine has no other DNS
		VolumePluginDir:           volumePlugins,
		NodeStatusUpdateFrequency: metav1.Duration{Duration: 5 * time.Second},
		MaxPods:                   250,
		Logging:                   logs.LoggingConfiguration{Verbosity: 2},
	}
	foreignHost(&k)
	unthrottled(&k)
	content, err := yaml.Marshal(k)
	return []box.File{public(kubeletConfig, content)}, err
}

// foreignHost makes a kubelet get along with a host that is not its own: with
// the host's cgroups, swap, full disk and firewall.
func foreignHost(k *config.KubeletConfiguration) {
	k.CgroupDriver = "cgroupfs"
	k.FailCgroupV1 = new(false)
	k.FailSwapOn = new(false)
	k.EnforceNodeAllocatable = []string{"none"}
	k.OOMScoreAdj = new(int32(0)) // less would need CAP_SYS_RESOURCE
	k.MakeIPTablesUtilChains = new(false)
	k.ImageGCHighThresholdPercent = new(int32(100)) // never: images cannot be pulled again
	k.ImageGCLowThresholdPercent = new(int32(99))
	k.EvictionHard = map[string]string{}
	for _, signal := range []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"} {
		k.EvictionHard[signal] = "0%"
	}
}

// unthrottled takes away the limits that spare a shared registry and API
// server.
func unthrottled(k *config.KubeletConfiguration) {
	k.SerializeImagePulls = new(false)
	k.RegistryPullQPS = new(int32(0))
	k.EventRecordQPS = new(int32(0))
	k.KubeAPIQPS = new(int32(200))
	k.KubeAPIBurst = 400
}
