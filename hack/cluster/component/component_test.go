package component

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	kubeproxy "k8s.io/kube-proxy/config/v1alpha1"
	kubelets "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

// clusters are one of each kind.
var clusters = map[string]plan.Options{
	"ipv4": {Nodes: 2, Rails: 2, IPv4: true},
	"ipv6": {Nodes: 2, Rails: 2, IPv6: true},
	"dual": {Nodes: 2, Rails: 2, IPv4: true, IPv6: true},
}

// TestFlags wants the settings without which a cluster comes up and is not the
// one that was planned, or reaches beyond its machines.
func TestFlags(t *testing.T) {
	t.Parallel()
	c := made(t, clusters["dual"])
	for name, want := range map[string][]string{
		Etcd: {"--listen-client-urls=http://127.0.0.1:2379"}, // it asks nobody for a certificate
		APIServer: {
			"--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112",
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--enable-aggregator-routing", // there is no kube-proxy beside it
			"--allow-privileged",
		},
		ControllerManager: {
			"--controllers=*,-node-ipam-controller", // nodes have the planned networks
			"--use-service-account-credentials",
		},
		Kubelet: {"--hostname-override=node2", "--node-ip=10.99.0.12,fd00:99::12"},
	} {
		i := slices.IndexFunc(c.services(), func(s box.Service) bool { return s.Name == name })
		for _, flag := range want {
			if args := c.services()[i].Args; !slices.Contains(args, flag) {
				t.Errorf("%s: no %s in %q", name, flag, args)
			}
		}
	}
}

// TestKubeProxyLeavesTheHostAlone: limits of connection tracking are the whole
// host's, and zero leaves them as they are.
func TestKubeProxyLeavesTheHostAlone(t *testing.T) {
	t.Parallel()
	var got kubeproxy.KubeProxyConfiguration
	if err := yaml.UnmarshalStrict(file(t, made(t, clusters["ipv4"]).node, kubeProxyConfig), &got); err != nil {
		t.Fatal(err)
	}
	if got.Mode != "nftables" {
		t.Errorf("mode %q: machines have nft and no iptables", got.Mode)
	}
	want := kubeproxy.KubeProxyConntrackConfiguration{
		MaxPerCore: new(int32(0)), Min: new(int32(0)), TCPEstablishedTimeout: &metav1.Duration{}, TCPCloseWaitTimeout: &metav1.Duration{},
	}
	if diff := cmp.Diff(want, got.Conntrack); diff != "" {
		t.Errorf("connection tracking (-want +got):\n%s", diff)
	}
}

// TestKubeletEvictsNothing: how full the host's disk and memory are is no
// matter of the pods.
func TestKubeletEvictsNothing(t *testing.T) {
	t.Parallel()
	var got kubelets.KubeletConfiguration
	if err := yaml.UnmarshalStrict(file(t, made(t, clusters["ipv4"]).node, kubeletConfig), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.EvictionHard) == 0 {
		t.Error("the kubelet's own thresholds hold")
	}
	for signal, threshold := range got.EvictionHard {
		if threshold != "0%" {
			t.Errorf("%s at %s", signal, threshold)
		}
	}
	if *got.FailSwapOn {
		t.Error("it does not start where the host has swap")
	}
}

// TestUsers: each kubeconfig is of the component that uses it.
func TestUsers(t *testing.T) {
	t.Parallel()
	c := made(t, clusters["ipv6"])
	for path, want := range map[string]string{
		AdminKubeconfig:             "kubernetes-admin",
		controllerManagerKubeconfig: "system:kube-controller-manager",
		schedulerKubeconfig:         "system:kube-scheduler",
		kubeletKubeconfig:           "system:node:node2",
		kubeProxyKubeconfig:         "system:kube-proxy",
	} {
		m := c.node
		if slices.ContainsFunc(c.fabric.Files, func(f box.File) bool { return f.Path == path }) {
			m = c.fabric
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(file(t, m, path))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		block, _ := pem.Decode(config.CertData)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if cert.Subject.CommonName != want || config.Host != "https://[fd00:99::1]:443" {
			t.Errorf("%s is of %s at %s, want %s", path, cert.Subject.CommonName, config.Host, want)
		}
	}
}

// TestFilesAreThere looks for files that a machine's services are told to read
// and that it does not have.
func TestFilesAreThere(t *testing.T) {
	t.Parallel()
	etc := regexp.MustCompile(`/etc/(kubernetes|containerd)/[\w./-]+`)
	for name, o := range clusters {
		c := made(t, o)
		for _, m := range []Machine{c.fabric, c.node} {
			var named []string
			for _, s := range m.Services {
				for _, arg := range slices.Concat(s.Args, s.Ready) {
					named = append(named, etc.FindAllString(arg, -1)...)
				}
			}
			for _, f := range m.Files {
				named = append(named, etc.FindAllString(string(f.Content), -1)...)
			}
			if len(named) == 0 {
				t.Errorf("%s: no service is told to read a file", name)
			}
			for _, path := range named {
				if !slices.ContainsFunc(m.Files, func(f box.File) bool { return f.Path == path }) {
					t.Errorf("%s: there is no %s", name, path)
				}
			}
		}
	}
}

func TestKeysAreSecret(t *testing.T) {
	t.Parallel()
	c := made(t, clusters["dual"])
	keys := 0
	for _, f := range slices.Concat(c.fabric.Files, c.node.Files) {
		secret := bytes.Contains(f.Content, []byte("PRIVATE KEY")) || bytes.Contains(f.Content, []byte("client-key-data"))
		if secret {
			keys++
		}
		if want := map[bool]fs.FileMode{true: 0o600, false: 0o644}[secret]; f.Mode != want {
			t.Errorf("%s has mode %v, want %v", f.Path, f.Mode, want)
		}
	}
	if keys == 0 {
		t.Error("there are no keys")
	}
}

// TestNodesHaveNoAuthority: what is on a node cannot make certificates, nor
// sign tokens, nor do what an administrator may.
func TestNodesHaveNoAuthority(t *testing.T) {
	t.Parallel()
	c := made(t, clusters["dual"])
	for _, f := range c.node.Files {
		for _, never := range [][]byte{c.pki.CA.Key, c.pki.FrontCA.Key, c.pki.ServiceAccounts.Private} {
			if bytes.Contains(f.Content, never) {
				t.Errorf("%s has the cluster's key in it", f.Path)
			}
		}
		if f.Path == AdminKubeconfig {
			t.Errorf("there is the administrator's %s", f.Path)
		}
	}
}

// TestOneFamily looks for addresses of the family that a cluster has not.
func TestOneFamily(t *testing.T) {
	t.Parallel()
	foreign := map[string]*regexp.Regexp{
		"ipv4": regexp.MustCompile(`[[0-9a-f]*::[0-9a-f]*`),
		"ipv6": regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`),
	}
	for name, address := range foreign {
		c := made(t, clusters[name])
		for _, m := range []Machine{c.fabric, c.node} {
			for _, s := range m.Services {
				for _, arg := range s.Args {
					if address.MatchString(arg) {
						t.Errorf("%s: %s", name, arg)
					}
				}
			}
			for _, f := range m.Files {
				if found := address.Find(f.Content); found != nil {
					t.Errorf("%s: %s has %q", name, f.Path, found)
				}
			}
		}
		if found := address.Find(c.dns); found != nil {
			t.Errorf("%s: the manifest of the DNS has %q", name, found)
		}
	}
}

func TestAPIServerAddress(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"ipv4": "10.99.0.1:443", "dual": "10.99.0.1:443", "ipv6": "[fd00:99::1]:443"} {
		if got := APIServerAddress(made(t, clusters[name]).plan); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// cluster is all that a cluster of two nodes is told.
type cluster struct {
	plan         *plan.Cluster
	pki          *pki.PKI
	fabric, node Machine // the node is node2
	dns          []byte
}

func made(t *testing.T, o plan.Options) (c cluster) {
	t.Helper()
	var err error
	must := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c.plan, err = plan.New(o)
	must()
	c.pki, err = pki.New(c.plan, time.Now())
	must()
	c.fabric, err = ControlPlane(c.plan, c.pki)
	must()
	c.node, err = Node(c.plan, c.plan.Nodes[1], c.pki)
	must()
	c.dns, err = DNS(c.plan)
	must()
	return c
}

// services are those of both machines.
func (c cluster) services() []box.Service { return slices.Concat(c.fabric.Services, c.node.Services) }
