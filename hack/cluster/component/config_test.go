package component

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/image"
	"railhead/hack/cluster/pki"
)

func TestContainerdConfig(t *testing.T) {
	t.Parallel()
	var config struct {
		Version int
		Plugins map[string]map[string]any
	}
	if err := toml.Unmarshal(file(t, made(t, clusters["ipv4"]).node, containerdConfig), &config); err != nil {
		t.Fatal(err)
	}
	if config.Version != 4 {
		t.Errorf("version %d, want 4, the first with plugins as they are named here", config.Version)
	}
	want := map[string]any{"sandbox": image.Pause}
	if diff := cmp.Diff(want, config.Plugins["io.containerd.cri.v1.images"]["pinned_images"]); diff != "" {
		t.Errorf("pinned images (-want +got):\n%s", diff)
	}
}

// TestCNI: pods get an address of each of their node's networks.
func TestCNI(t *testing.T) {
	t.Parallel()
	for name := range clusters {
		c := made(t, clusters[name])
		var list struct {
			Plugins []struct {
				Type string
				IPAM struct {
					Ranges [][]struct{ Subnet netip.Prefix }
				}
			}
		}
		if err := json.Unmarshal(file(t, c.node, cniConfigDir+"/50-pods.conflist"), &list); err != nil {
			t.Fatal(err)
		}
		var types []string
		var got []netip.Prefix
		for _, p := range list.Plugins {
			types = append(types, p.Type)
			for _, r := range p.IPAM.Ranges {
				got = append(got, r[0].Subnet)
			}
		}
		if want := []string{"bridge", "portmap"}; !slices.Equal(types, want) {
			t.Errorf("%s: plugins %q, want %q", name, types, want)
		}
		if want := c.plan.Nodes[1].Pods; !slices.Equal(got, want) {
			t.Errorf("%s: pods from %v, want %v", name, got, want)
		}
	}
}

// TestDNS reads the manifest as the API server would, strictly.
func TestDNS(t *testing.T) {
	t.Parallel()
	for name := range clusters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := made(t, clusters[name])
			objects := decoded(t, string(c.dns))
			service := objects["Service"].(*core.Service)
			if diff := cmp.Diff(texts(c.plan.DNS), service.Spec.ClusterIPs); diff != "" || service.Spec.ClusterIP != service.Spec.ClusterIPs[0] {
				t.Errorf("addresses %q and %q (-want +got):\n%s", service.Spec.ClusterIP, service.Spec.ClusterIPs, diff)
			}
			for i, f := range service.Spec.IPFamilies {
				if want := map[bool]core.IPFamily{true: core.IPv4Protocol, false: core.IPv6Protocol}[c.plan.DNS[i].Is4()]; f != want {
					t.Errorf("family %s of %v, want %s", f, c.plan.DNS[i], want)
				}
			}
			deployment := objects["Deployment"].(*apps.Deployment)
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got != image.CoreDNS {
				t.Errorf("image %s, want %s", got, image.CoreDNS)
			}
			selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
			if err != nil || selector.String() != metav1.FormatLabelSelector(metav1.SetAsLabelSelector(service.Spec.Selector)) {
				t.Errorf("the Service selects %v, the Deployment has %v, %v", service.Spec.Selector, selector, err)
			}
			corefile := objects["ConfigMap"].(*core.ConfigMap).Data["Corefile"]
			if !strings.HasPrefix(corefile, pki.Domain+" ") || strings.Count(corefile, "{") != strings.Count(corefile, "}") {
				t.Errorf("Corefile:\n%s", corefile)
			}
		})
	}
}

// decoded reads objects by their kind, of which each manifest has one.
func decoded(t *testing.T, manifest string) map[string]metav1.Object {
	t.Helper()
	objects := map[string]metav1.Object{
		"ServiceAccount": &core.ServiceAccount{}, "ClusterRole": &rbac.ClusterRole{}, "ClusterRoleBinding": &rbac.ClusterRoleBinding{},
		"ConfigMap": &core.ConfigMap{}, "Deployment": &apps.Deployment{}, "Service": &core.Service{},
	}
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var kind metav1.TypeMeta
		if err := strict.Unmarshal(document, &kind); err != nil {
			t.Fatal(err)
		}
		object, ok := objects[kind.Kind]
		if !ok || object.GetName() != "" {
			t.Fatalf("a kind %q too many:\n%s", kind.Kind, document)
		}
		if err := strict.UnmarshalStrict(document, object); err != nil {
			t.Fatalf("%s: %v", kind.Kind, err)
		}
	}
	for kind, object := range objects {
		if object.GetName() == "" {
			t.Errorf("there is no %s", kind)
		}
	}
	return objects
}

// file is the content of a machine's file.
func file(t *testing.T, m Machine, path string) []byte {
	t.Helper()
	i := slices.IndexFunc(m.Files, func(f box.File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("there is no %s", path)
	}
	return m.Files[i].Content
}
