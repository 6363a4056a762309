package nad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/golden"
	"railhead/internal/policy"
)

// parse is the SpiderMultusConfig of a case, which leaves out what all have in common.
func parse(t *testing.T, text []byte) *v2beta1.SpiderMultusConfig {
	t.Helper()
	obj := &v2beta1.SpiderMultusConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "spiderpool", Name: "rail"}}
	if err := yaml.UnmarshalStrict(text, obj); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return obj
}

// network is the network of obj as admission and the controller see it.
func network(t *testing.T, obj *v2beta1.SpiderMultusConfig) policy.Network {
	t.Helper()
	c := policy.NewCatalog()
	c.Default(obj)
	if r := c.Review(obj, nil); !r.OK() {
		t.Fatal(r.Errors.ToAggregate())
	}
	c.Put(obj)
	n, ok := c.Network(obj.Namespace, obj.Name)
	if !ok {
		t.Fatal("the network was accepted and is not in the Catalog")
	}
	return n
}

// render is what a golden file says of a NetworkAttachmentDefinition.
func render(t *testing.T, nad *cniv1.NetworkAttachmentDefinition) string {
	t.Helper()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s/%s\n", nad.Namespace, nad.Name)
	for _, key := range slices.Sorted(maps.Keys(nad.Annotations)) {
		fmt.Fprintf(&text, "%s: %s\n", key, nad.Annotations[key])
	}
	if nad.Spec.Config == "" {
		text.WriteString("no config")
	} else if err := json.Indent(&text, []byte(nad.Spec.Config), "", "  "); err != nil {
		t.Fatal(err)
	}
	return text.String() + "\n"
}

// loads wants a NetworkAttachmentDefinition that its own review and libcni accept.
func loads(t *testing.T, nad *cniv1.NetworkAttachmentDefinition) {
	t.Helper()
	if r := policy.NewCatalog().Review(nad, nil); !r.OK() {
		t.Errorf("review of the NetworkAttachmentDefinition: %v", r.Errors)
	}
	if nad.Spec.Config == "" {
		return
	}
	if _, err := libcni.NetworkPluginConfFromBytes([]byte(nad.Spec.Config)); err == nil {
		return // a custom configuration of one plugin
	}
	config := map[string]any{}
	if err := json.Unmarshal([]byte(nad.Spec.Config), &config); err != nil {
		t.Fatal(err)
	}
	if _, named := config["name"]; !named {
		config["name"] = nad.Name
	}
	whole, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := libcni.NetworkConfFromBytes(whole)
	if err != nil || len(list.Plugins) == 0 {
		t.Errorf("libcni: %v, %d plugins in %s", err, len(list.Plugins), nad.Spec.Config)
	}
}

func TestFor(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// Goldens follow their cases: "name.yaml", then "name.nad".
		var written []txtar.File
		want := map[string]string{}
		for _, f := range archive.Files {
			want[f.Name] = string(f.Data)
		}
		for _, f := range archive.Files {
			name, ok := strings.CutSuffix(f.Name, ".yaml")
			if !ok {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				nad, err := For(network(t, parse(t, f.Data)))
				if err != nil {
					t.Fatal(err)
				}
				loads(t, nad)
				got := render(t, nad)
				written = append(written, f, txtar.File{Name: name + ".nad", Data: []byte(got)})
				if diff := cmp.Diff(want[name+".nad"], got); diff != "" && !golden.Update() {
					t.Errorf("(-want +got), go test -update accepts it:\n%s", diff)
				}
			})
		}
		if golden.Update() {
			archive.Files = written
			if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Equal networks give equal text, whatever order maps are walked in.
func TestForIsStable(t *testing.T) {
	text := []byte(`
metadata: {annotations: {a: "1", b: "2", c: "3", d: "4", e: "5"}}
spec:
  cniType: macvlan
  macvlan: {master: [ens6f0np0], ippools: {ipv4: [v4-81], ipv6: [v6-81]}}
  coordinator: {mode: overlay, policyRoutes: [{dst: 10.0.0.0/8, gw: 172.81.0.1}]}
`)
	first, err := For(network(t, parse(t, text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := For(network(t, parse(t, text)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The network shares its annotations with everybody who asked for it.
func TestForLeavesTheNetwork(t *testing.T) {
	n := network(t, parse(t, []byte(`
metadata: {annotations: {a: "1"}}
spec: {cniType: sriov, sriov: {resourceName: spidernet.io/mellanoxrdma}}
`)))
	nad, err := For(n)
	if err != nil {
		t.Fatal(err)
	}
	if got := nad.Annotations[cniv1.AnnotationResourceName]; got != "spidernet.io/mellanoxrdma" {
		t.Errorf("resource is %q", got)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, n.Annotations); diff != "" {
		t.Error(diff)
	}
}

// What users wrote as a whole is theirs: spaces, order of keys and all.
func TestForCustomIsVerbatim(t *testing.T) {
	const text = "{ \"type\":\"macvlan\",\n\t\"a\": \"<\" }\n"
	obj := parse(t, []byte("{}"))
	custom := text
	obj.Spec.CustomCNI = &custom
	nad, err := For(network(t, obj))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, nad.Spec.Config); diff != "" {
		t.Error(diff)
	}
}

func TestForRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    policy.Network
		want string
	}{
		{"no type", policy.Network{}, `SpiderMultusConfig spiderpool/rail: no plugin makes interfaces of type ""`},
		{"no master", policy.Network{Type: v2beta1.CNIMacvlan}, "SpiderMultusConfig spiderpool/rail: 0 masters without a bond: want one, or a bond"},
		{"no rates", policy.Network{Type: v2beta1.CNISRIOV}, "SpiderMultusConfig spiderpool/rail: sriov without its rates"},
		{"no link state", policy.Network{Type: v2beta1.CNIIBSRIOV}, "SpiderMultusConfig spiderpool/rail: ib-sriov without its partition key and link state"},
		{"no bridge", policy.Network{Type: v2beta1.CNIOVS}, "SpiderMultusConfig spiderpool/rail: ovs without its bridge"},
		{
			"chain is no JSON",
			policy.Network{Type: v2beta1.CNIMacvlan, Masters: []string{"a"}, Chain: []json.RawMessage{json.RawMessage("{")}},
			"SpiderMultusConfig spiderpool/rail: encode its CNI configuration: json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.n.Namespace, tc.n.Name = "spiderpool", "rail"
			_, err := For(tc.n)
			if err == nil {
				t.Fatal("was accepted")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
