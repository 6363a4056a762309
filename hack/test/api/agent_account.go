package api

import (
	"os"
	"path/filepath"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// InstallAgents makes what the agents' manifest makes of what is not an agent:
// its rights, and how its requests are served.
func (s *Server) InstallAgents(tb testing.TB) {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/railhead-agent.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	for _, o := range Objects(tb, string(text)) {
		switch group := o.GroupVersionKind().Group; {
		case o.GetKind() == "ServiceAccount", group == rbacv1.GroupName, group == flowcontrolv1.GroupName:
		default:
			continue
		}
		if err := s.Create(tb.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			tb.Fatalf("create %s: %v", title(o), err)
		}
	}
}

// AgentConfig is the access that the agent of a node has: with the rights of
// its manifest, and by a token that says which node it is on. There is nobody
// who would make its pod, so that it is an administrator who goes by that name.
func (s *Server) AgentConfig(node string) *rest.Config {
	config := rest.CopyConfig(s.Config)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + Namespace + ":railhead-agent",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace, "system:authenticated"},
		Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	}
	return config
}

// writeKubeconfig writes a file by which a program of ours has the access of a
// configuration, and returns its path.
func (s *Server) writeKubeconfig(tb testing.TB, name, server string, config *rest.Config) string {
	tb.Helper()
	file := filepath.Join(s.sub("kubeconfigs"), name)
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: server, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
			Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, file)
	if err != nil {
		tb.Fatal(err)
	}
	return file
}

// agentKubeconfig is a file with AgentConfig.
func (s *Server) agentKubeconfig(tb testing.TB, node string) string {
	tb.Helper()
	return s.writeKubeconfig(tb, node, s.Config.Host, s.AgentConfig(node))
}
