package component

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// clusters are those that there are golden files of.
var clusters = map[string]plan.Options{
	"ipv4": {Nodes: 2, Rails: 2, IPv4: true},
	"ipv6": {Nodes: 2, Rails: 2, IPv6: true},
	"dual": {Nodes: 2, Rails: 2, IPv4: true, IPv6: true},
}

// TestMachines compares all that the machines of a cluster are told with
// golden files.
func TestMachines(t *testing.T) {
	t.Parallel()
	for name, o := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := made(t, o)
			var got strings.Builder
			c.fabric.write(t, &got, plan.Fabric)
			c.node.write(t, &got, "node2")
			fmt.Fprintf(&got, "==== manifest of the DNS\n%s", c.dns)
			golden(t, name, got.String())
		})
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

// write writes a machine for people to read.
func (m Machine) write(t *testing.T, w *strings.Builder, name string) {
	t.Helper()
	for _, s := range m.Services {
		fmt.Fprintf(w, "==== service of %s: %s\n%s\n", name, s.Name, strings.Join(s.Args, "\n  "))
		if s.Ready != nil {
			fmt.Fprintf(w, "ready when: %s\n", strings.Join(s.Ready, " "))
		}
	}
	for _, f := range m.Files {
		fmt.Fprintf(w, "==== file of %s: %s %v\n%s", name, f.Path, f.Mode, readable(t, f))
	}
}

// readable is what is in a file, with credentials told by whose they are: they
// are never the same twice.
func readable(t *testing.T, f box.File) string {
	t.Helper()
	if block, _ := pem.Decode(f.Content); block != nil {
		return whose(t, f.Content)
	}
	if filepath.Ext(f.Path) != ".conf" {
		return string(f.Content)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(f.Content)
	if err != nil {
		t.Fatalf("%s: %v", f.Path, err)
	}
	return fmt.Sprintf("kubeconfig: server %s, %s", config.Host, whose(t, config.CertData))
}

// whose tells about a certificate or key.
func whose(t *testing.T, text []byte) string {
	t.Helper()
	block, _ := pem.Decode(text)
	if block.Type != "CERTIFICATE" {
		return block.Type + "\n"
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("certificate of %v by %v\n", cert.Subject, cert.Issuer)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), go test -update accepts it:\n%s", file, diff)
	}
}
