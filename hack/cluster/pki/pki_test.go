package pki

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"railhead/hack/cluster/plan"
)

// now is when the certificates of these tests are made.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestNew(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv4: true, IPv6: true})
	clientOnly := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	serverOnly := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	tests := []struct {
		name      string
		pair      Pair
		by        *Authority
		user      string
		groups    []string
		usages    []x509.ExtKeyUsage
		hostnames []string
	}{
		{"API server", p.APIServer, p.CA, "kube-apiserver", nil, serverOnly, []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost", "fabric",
			"127.0.0.1", "::1", "10.99.0.1", "fd00:99::1", "10.96.0.1", "fd00:96::1",
		}},
		{"to kubelets", p.ToKubelets, p.CA, "kube-apiserver-kubelet-client", []string{"system:masters"}, clientOnly, nil},
		{"front proxy", p.FrontProxy, p.FrontCA, FrontProxyName, nil, clientOnly, nil},
		{"administrator", p.Admin, p.CA, "kubernetes-admin", []string{"system:masters"}, clientOnly, nil},
		{"controller manager", p.ControllerManager, p.CA, "system:kube-controller-manager", nil, clientOnly, nil},
		{"scheduler", p.Scheduler, p.CA, "system:kube-scheduler", nil, clientOnly, nil},
		{"kube-proxy", p.KubeProxy, p.CA, "system:kube-proxy", nil, clientOnly, nil},
		{
			"node", p.Nodes["node1"], p.CA, "system:node:node1",
			[]string{"system:nodes"},
			slices.Concat(clientOnly, serverOnly),
			[]string{"node1", "localhost", "127.0.0.1", "::1", "10.99.0.11", "fd00:99::11"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cert := verified(t, tt.pair, tt.by, now)
			if cert.Subject.CommonName != tt.user || !slices.Equal(cert.Subject.Organization, tt.groups) {
				t.Errorf("subject %v, want user %q of groups %q", cert.Subject, tt.user, tt.groups)
			}
			if diff := cmp.Diff(tt.usages, cert.ExtKeyUsage); diff != "" {
				t.Errorf("usages (-want +got):\n%s", diff)
			}
			for _, name := range tt.hostnames {
				if err := cert.VerifyHostname(name); err != nil {
					t.Error(err)
				}
			}
			if got := len(cert.DNSNames) + len(cert.IPAddresses); got != len(tt.hostnames) {
				t.Errorf("names %q and addresses %v, want only %q", cert.DNSNames, cert.IPAddresses, tt.hostnames)
			}
		})
	}
}

func TestNewMakesACertificateForEachNode(t *testing.T) {
	t.Parallel()
	c, p := made(t, plan.Options{Nodes: 3, IPv6: true})
	if len(p.Nodes) != len(c.Nodes) {
		t.Errorf("%d certificates for %d nodes", len(p.Nodes), len(c.Nodes))
	}
	for _, n := range c.Nodes {
		cert := verified(t, p.Nodes[n.Name], p.CA, now)
		if err := cert.VerifyHostname(n.Host[0].Addr().String()); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
}

// TestAuthoritiesAreApart: who may speak for others to an aggregated API server
// is not everybody whom the API server knows, and the other way round.
func TestAuthoritiesAreApart(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv4: true})
	if err := verify(parsed(t, p.FrontProxy), p.CA, now); err == nil {
		t.Error("the front proxy's certificate is of the cluster's authority")
	}
	if err := verify(parsed(t, p.Admin), p.FrontCA, now); err == nil {
		t.Error("the administrator's certificate is of the front proxy's authority")
	}
}

func TestValidity(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv4: true})
	cert := parsed(t, p.APIServer)
	tests := []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"a clock that is behind", now.Add(-30 * time.Minute), true},
		{"the last day", now.AddDate(1, 0, -1), true},
		{"long before", now.AddDate(0, 0, -1), false},
		{"after a year", now.AddDate(1, 0, 1), false},
	}
	for _, tt := range tests {
		if err := verify(cert, p.CA, tt.at); (err == nil) != tt.ok {
			t.Errorf("%s: error %v, want valid: %v", tt.name, err, tt.ok)
		}
	}
}

func TestServiceAccountKeys(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv4: true})
	private, err := x509.ParsePKCS8PrivateKey(der(t, p.ServiceAccounts.Private, "PRIVATE KEY"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.ParsePKIXPublicKey(der(t, p.ServiceAccounts.Public, "PUBLIC KEY"))
	if err != nil {
		t.Fatal(err)
	}
	if !private.(*ecdsa.PrivateKey).PublicKey.Equal(public) {
		t.Error("the public key is not that of the private one")
	}
}

func TestServiceLeaf(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv4: true})
	pair, err := p.CA.Issue(ServiceLeaf("hooks", "mutate"))
	if err != nil {
		t.Fatal(err)
	}
	if err := verified(t, pair, p.CA, now).VerifyHostname("mutate.hooks.svc"); err != nil {
		t.Error(err)
	}
}

func TestIssueRefusesACertificateForNobody(t *testing.T) {
	t.Parallel()
	_, p := made(t, plan.Options{Nodes: 1, IPv4: true})
	leaf := client("idle")
	leaf.Client = false
	if pair, err := p.CA.Issue(leaf); err == nil || !strings.Contains(err.Error(), "certificate idle") {
		t.Errorf("certificate %q, error %v, want an error that names it", pair.Cert, err)
	}
}

func made(t *testing.T, o plan.Options) (*plan.Cluster, *PKI) {
	t.Helper()
	c, err := plan.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, now)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// verified parses a certificate and wants it to be issued by an authority, and
// its key to be its own.
func verified(t *testing.T, pair Pair, by *Authority, at time.Time) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Error(err)
	}
	cert := parsed(t, pair)
	if err := verify(cert, by, at); err != nil {
		t.Error(err)
	}
	return cert
}

func verify(cert *x509.Certificate, by *Authority, at time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(by.Cert)
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

func parsed(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(der(t, pair.Cert, "CERTIFICATE"))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// der is what is in the only block of a PEM file.
func der(t *testing.T, text []byte, kind string) []byte {
	t.Helper()
	block, rest := pem.Decode(text)
	if block == nil || block.Type != kind || len(rest) > 0 {
		t.Fatalf("%q is not one block %q of PEM", text, kind)
	}
	return block.Bytes
}
