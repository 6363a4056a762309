package pki

import (
	"fmt"
	"net/url"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Kubeconfig is the file with which a client reaches the API server at a URL
// (https://10.99.0.1:443) as the user of a certificate. It holds everything:
// it refers to no other file.
func (p *PKI) Kubeconfig(server string, user Pair) ([]byte, error) {
	if u, err := url.Parse(server); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("API server %q of a kubeconfig: want https://ADDRESS:PORT", server)
	}
	const name = "railhead"
	return yaml.Marshal(clientcmd.Config{
		APIVersion:     "v1",
		Kind:           "Config",
		CurrentContext: name,
		Clusters: []clientcmd.NamedCluster{{Name: name, Cluster: clientcmd.Cluster{
			Server:                   server,
			CertificateAuthorityData: p.CA.Cert,
		}}},
		AuthInfos: []clientcmd.NamedAuthInfo{{Name: name, AuthInfo: clientcmd.AuthInfo{
			ClientCertificateData: user.Cert,
			ClientKeyData:         user.Key,
		}}},
		Contexts: []clientcmd.NamedContext{{Name: name, Context: clientcmd.Context{Cluster: name, AuthInfo: name}}},
	})
}
