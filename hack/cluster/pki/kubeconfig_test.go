package pki

import (
	"bytes"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"railhead/hack/cluster/plan"
)

func TestKubeconfig(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv6: true})
	text, err := p.Kubeconfig("https://[fd00:99::1]:443", p.Scheduler)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://[fd00:99::1]:443"; config.Host != want {
		t.Errorf("server %q, want %q", config.Host, want)
	}
	if !bytes.Equal(config.CAData, p.CA.Cert) {
		t.Error("the authority is not the cluster's")
	}
	if !bytes.Equal(config.CertData, p.Scheduler.Cert) || !bytes.Equal(config.KeyData, p.Scheduler.Key) {
		t.Error("the user is not the one asked for")
	}
}

func TestKubeconfigRefuses(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv4: true})
	for _, server := range []string{"", "10.99.0.1:443", "http://10.99.0.1:443", "https://", "https://fd00:99::1:443:443 "} {
		if text, err := p.Kubeconfig(server, p.Admin); err == nil {
			t.Errorf("server %q: %q, want an error", server, text)
		}
	}
}
