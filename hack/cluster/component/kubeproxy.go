package component

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	base "k8s.io/component-base/config/v1alpha1"
	config "k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/plan"
)

const kubeProxyConfig = "/etc/kubernetes/kube-proxy.yaml"

func kubeProxy() box.Service { return service(KubeProxy, "--config="+kubeProxyConfig) }

// kubeProxyFiles are kube-proxy's settings. It leaves connection tracking as
// it is, because its limits are the whole host's.
func kubeProxyFiles(c *plan.Cluster, n plan.Node) ([]box.File, error) {
	content, err := yaml.Marshal(config.KubeProxyConfiguration{
		TypeMeta:           metav1.TypeMeta{APIVersion: config.SchemeGroupVersion.String(), Kind: "KubeProxyConfiguration"},
		ClientConnection:   base.ClientConnectionConfiguration{Kubeconfig: kubeProxyKubeconfig},
		HostnameOverride:   n.Name,
		BindAddress:        everywhere(c),
		HealthzBindAddress: localPort(c, 10256),
		MetricsBindAddress: localPort(c, 10249),
		Mode:               "nftables",
		DetectLocalMode:    "ClusterCIDR",
		ClusterCIDR:        joined(c.Pods),
		Conntrack: config.KubeProxyConntrackConfiguration{
			MaxPerCore:            new(int32(0)),
			Min:                   new(int32(0)),
			TCPEstablishedTimeout: &metav1.Duration{},
			TCPCloseWaitTimeout:   &metav1.Duration{},
		},
	})
	return []box.File{public(kubeProxyConfig, content)}, err
}
