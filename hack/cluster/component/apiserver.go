package component

import (
	"fmt"
	"slices"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

// apiServer listens on all addresses of the fabric: that of the bridge for
// nodes, localhost, and the Service's own. It runs no kube-proxy, so it looks
// up the endpoints of webhooks and aggregated servers by itself
// (--enable-aggregator-routing).
func apiServer(c *plan.Cluster) box.Service {
	s := service(APIServer, slices.Concat(
		[]string{
			fmt.Sprintf("--secure-port=%d", apiPort),
			"--bind-address=" + everywhere(c),
			"--advertise-address=" + c.Host[0].Addr().String(),
			"--etcd-servers=" + etcdURL(c),
			"--service-cluster-ip-range=" + joined(c.Services),
			"--allow-privileged",
			"--enable-aggregator-routing",
			"--profiling=false",
		},
		apiServerCredentials(),
	)...)
	s.Ready = []string{program("kubectl"), "--kubeconfig=" + AdminKubeconfig, "get", "--raw=/readyz"}
	return s
}

// apiServerCredentials say whom the API server believes, and what it shows to
// clients, kubelets and aggregated servers.
func apiServerCredentials() []string {
	return []string{
		"--client-ca-file=" + caCert,
		"--tls-cert-file=" + certOf(apiServerPair),
		"--tls-private-key-file=" + keyOf(apiServerPair),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--kubelet-certificate-authority=" + caCert,
		"--kubelet-client-certificate=" + certOf(toKubeletsPair),
		"--kubelet-client-key=" + keyOf(toKubeletsPair),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=" + pki.Issuer,
		"--service-account-key-file=" + saPublicKey,
		"--service-account-signing-key-file=" + saPrivateKey,
		"--requestheader-client-ca-file=" + frontCACert,
		"--requestheader-allowed-names=" + pki.FrontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + certOf(frontPair),
		"--proxy-client-key-file=" + keyOf(frontPair),
	}
}
