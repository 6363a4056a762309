package component

import (
	"railhead/hack/cluster/box"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

// Certificates and keys in a machine, named as kubeadm names them.
const (
	pkiDir = "/etc/kubernetes/pki"

	caCert       = pkiDir + "/ca.crt"
	caKey        = pkiDir + "/ca.key"
	frontCACert  = pkiDir + "/front-proxy-ca.crt"
	saPublicKey  = pkiDir + "/sa.pub"
	saPrivateKey = pkiDir + "/sa.key"

	apiServerPair  = pkiDir + "/apiserver"
	toKubeletsPair = pkiDir + "/apiserver-kubelet-client"
	frontPair      = pkiDir + "/front-proxy-client"
	kubeletPair    = pkiDir + "/kubelet"
)

// Kubeconfigs in a machine.
const (
	controllerManagerKubeconfig = "/etc/kubernetes/controller-manager.conf"
	schedulerKubeconfig         = "/etc/kubernetes/scheduler.conf"
	kubeletKubeconfig           = "/etc/kubernetes/kubelet.conf"
	kubeProxyKubeconfig         = "/etc/kubernetes/kube-proxy.conf"
)

// controlPlaneCredentials are what the components in the fabric prove
// themselves with, and sign with.
func controlPlaneCredentials(c *plan.Cluster, p *pki.PKI) ([]box.File, error) {
	files := []box.File{
		public(caCert, p.CA.Cert),
		secret(caKey, p.CA.Key),
		public(frontCACert, p.FrontCA.Cert),
		public(saPublicKey, p.ServiceAccounts.Public),
		secret(saPrivateKey, p.ServiceAccounts.Private),
	}
	files = append(files, pair(apiServerPair, p.APIServer)...)
	files = append(files, pair(toKubeletsPair, p.ToKubelets)...)
	files = append(files, pair(frontPair, p.FrontProxy)...)
	return kubeconfigs(files, c, p, []user{
		{AdminKubeconfig, p.Admin},
		{controllerManagerKubeconfig, p.ControllerManager},
		{schedulerKubeconfig, p.Scheduler},
	})
}

// nodeCredentials are those of a node's components.
func nodeCredentials(c *plan.Cluster, n plan.Node, p *pki.PKI) ([]box.File, error) {
	files := append([]box.File{public(caCert, p.CA.Cert)}, pair(kubeletPair, p.Nodes[n.Name])...)
	return kubeconfigs(files, c, p, []user{
		{kubeletKubeconfig, p.Nodes[n.Name]},
		{kubeProxyKubeconfig, p.KubeProxy},
	})
}

// user is whom a kubeconfig is for.
type user struct {
	file string
	pair pki.Pair
}

// kubeconfigs adds the kubeconfigs of users to files.
func kubeconfigs(files []box.File, c *plan.Cluster, p *pki.PKI, users []user) ([]box.File, error) {
	for _, u := range users {
		content, err := p.Kubeconfig(server(c), u.pair)
		if err != nil {
			return nil, err
		}
		files = append(files, secret(u.file, content))
	}
	return files, nil
}

// pair is a certificate with its key, name.crt and name.key.
func pair(name string, p pki.Pair) []box.File {
	return []box.File{public(certOf(name), p.Cert), secret(keyOf(name), p.Key)}
}

func certOf(name string) string { return name + ".crt" }
func keyOf(name string) string  { return name + ".key" }
