package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
)

// nadCases are NetworkAttachmentDefinitions and what admission says of each.
var nadCases = []struct {
	name, object, config string
	want                 []string
}{
	{"config absent", "rail", "", nil},
	{"config blank", "rail", " \n", nil},
	{"one plugin", "rail", `{"cniVersion": "0.3.1", "name": "x", "type": "macvlan", "ipam": {"type": "static"}}`, nil},
	{"list", "rail", `{"cniVersion": "1.0.0", "name": "x", "plugins": [{"type": "macvlan"}]}`, nil},
	{"name absent", "rail", `{"plugins": [{"type": "macvlan"}]}`, nil},
	{"name generated", "", `{"type": "macvlan"}`, nil},
	{"old version", "rail", `{"cniVersion": "0.1.0", "type": "macvlan"}`, nil},
	{"object name", "Rail_1", "", []string{
		`refused: metadata.name: Invalid value: "Rail_1": want the name of a NetworkAttachmentDefinition: up to 253 lower-case letters, digits, "-" and ".", with a letter or digit first and last and beside each "."`,
	}},
	{"object name with a dot", "rail.1", "", []string{
		`warning: metadata.name: rail.1 is no DNS label (up to 63 lower-case letters, digits and "-"): Multus cannot select such a NetworkAttachmentDefinition in the short form of k8s.v1.cni.cncf.io/networks`,
	}},
	{"object name long", strings.Repeat("a", 64), "", []string{
		`warning: metadata.name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is no DNS label (up to 63 lower-case letters, digits and "-"): Multus cannot select such a NetworkAttachmentDefinition in the short form of k8s.v1.cni.cncf.io/networks`,
	}},
	{"no JSON", "rail", "macvlan", []string{
		`refused: spec.config: Invalid value: "macvlan": is no JSON: want an object such as {"type": "macvlan"} (invalid character 'm' looking for beginning of value)`,
	}},
	{"no object", "rail", "5", []string{
		`refused: spec.config: Invalid value: "5": is JSON and no object: want one such as {"type": "macvlan"}`,
	}},
	{"null", "rail", "null", []string{
		`refused: spec.config: Invalid value: "null": is JSON and no object: want one such as {"type": "macvlan"}`,
	}},
	{"empty", "rail", "{}", []string{
		`refused: spec.config: Invalid value: "{}": has no type: want a JSON object such as {"type": "tuning"}`,
	}},
	{"no type", "rail", `{"name": "x"}`, []string{
		`refused: spec.config: Invalid value: "{\"name\": \"x\"}": has no type: want a JSON object such as {"type": "tuning"}`,
	}},
	{"type a path", "rail", `{"type": "/bin/sh"}`, []string{
		`refused: spec.config: Invalid value: "{\"type\": \"/bin/sh\"}": type "/bin/sh" is no name of a CNI plugin: want the file's name alone`,
	}},
	{"no plugins", "rail", `{"name": "x", "plugins": []}`, []string{
		`refused: spec.config: Invalid value: "{\"name\": \"x\", \"plugins\": []}": plugins must be a list of one or more CNI plugins, such as [{"type": "macvlan"}]`,
	}},
	{"plugins null", "rail", `{"name": "x", "plugins": null}`, []string{
		`refused: spec.config: Invalid value: "{\"name\": \"x\", \"plugins\": null}": plugins must be a list of one or more CNI plugins, such as [{"type": "macvlan"}]`,
	}},
	{"plugin without type", "rail", `{"name": "x", "plugins": [{"type": "macvlan"}, {"mtu": 5}]}`, []string{
		`refused: spec.config: Invalid value: "{\"name\": \"x\", \"plugins\": [{\"type\": \"macvlan\"}, {\"mtu\": 5}]}": plugins[1]: has no type: want a JSON object such as {"type": "tuning"}`,
	}},
	{"plugin no object", "rail", `{"name": "x", "plugins": ["macvlan"]}`, []string{
		`refused: spec.config: Invalid value: "{\"name\": \"x\", \"plugins\": [\"macvlan\"]}": plugins[0]: is JSON and no object: want one such as {"type": "macvlan"}`,
	}},
	{"network name", "rail", `{"name": "a/b", "type": "macvlan"}`, []string{
		`refused: spec.config: Invalid value: "{\"name\": \"a/b\", \"type\": \"macvlan\"}": name "a/b" is no name of a CNI network: want letters, digits, "_", "." and "-", with a letter or digit first`,
	}},
	{"network name empty", "rail", `{"name": "", "type": "macvlan"}`, []string{
		`refused: spec.config: Invalid value: "{\"name\": \"\", \"type\": \"macvlan\"}": name "" is no name of a CNI network: want letters, digits, "_", "." and "-", with a letter or digit first`,
	}},
	{"version no text", "rail", `{"cniVersion": 1, "type": "macvlan"}`, []string{
		`refused: spec.config: Invalid value: "{\"cniVersion\": 1, \"type\": \"macvlan\"}": cniVersion and name must be strings: json: cannot unmarshal number into Go struct field .cniVersion of type string`,
	}},
	{"version no version", "rail", `{"cniVersion": "one", "type": "macvlan"}`, []string{
		`refused: spec.config: Invalid value: "{\"cniVersion\": \"one\", \"type\": \"macvlan\"}": cniVersion "one" is no version: want one such as "1.0.0"`,
	}},
	{"version of tomorrow", "rail", `{"cniVersion": "1.9.0", "type": "macvlan"}`, []string{
		`warning: spec.config: cniVersion "1.9.0" is not known here: known are 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0`,
	}},
	{"what libcni finds", "rail", `{"cniVersions": "1.0.0", "plugins": [{"type": "macvlan"}]}`, []string{
		`refused: spec.config: Invalid value: "{\"cniVersions\": \"1.0.0\", \"plugins\": [{\"type\": \"macvlan\"}]}": is no list of CNI plugins: error parsing configuration list: invalid type for cniVersions: []interface {}`,
	}},
}

func TestNADRules(t *testing.T) {
	for _, tc := range nadCases {
		t.Run(tc.name, func(t *testing.T) {
			nad := &cniv1.NetworkAttachmentDefinition{
				ObjectMeta: metav1.ObjectMeta{Namespace: "spiderpool", Name: tc.object},
				Spec:       cniv1.NetworkAttachmentDefinitionSpec{Config: tc.config},
			}
			if diff := cmp.Diff(tc.want, admit(NewCatalog(), nad, nil)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNADThatGoes(t *testing.T) {
	now := metav1.Now()
	nad := &cniv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "rail", DeletionTimestamp: &now},
		Spec:       cniv1.NetworkAttachmentDefinitionSpec{Config: "{"},
	}
	if got := admit(NewCatalog(), nad, nil); got != nil {
		t.Errorf("got %q", got)
	}
}

// TestNADChange: a configuration that stays as it was is nobody's fault now.
func TestNADChange(t *testing.T) {
	t.Parallel()
	old := &cniv1.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Name: "rail"}, Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: "macvlan"}}
	labelled := old.DeepCopy()
	labelled.Labels = map[string]string{"example.spidernet.io/a": "b"}
	if r := NewCatalog().Review(labelled, old); !r.OK() {
		t.Errorf("a label is refused: %v", r.Errors)
	}
	changed := old.DeepCopy()
	changed.Spec.Config = "ipvlan"
	if NewCatalog().Review(changed, old).OK() {
		t.Error("another broken configuration is accepted")
	}
}
