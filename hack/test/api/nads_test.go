package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cniv1 "railhead/api/cni/v1"
)

// TestDefinitions has a SpiderMultusConfig of every type, with every option, made
// into a NetworkAttachmentDefinition: the cases and the golden files of
// internal/policy/nad, by way of the API server.
func TestDefinitions(t *testing.T) {
	s := Exclusive(t)
	s.Configure(t, usual)
	s.Control(t, Replica{})
	s.namespace(t, "spiderpool", nil)
	files, err := filepath.Glob(filepath.Join(root, "internal/policy/nad/testdata/*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, f := range archive.Files {
			texts[f.Name] = string(f.Data)
		}
		for _, f := range archive.Files {
			name, isCase := strings.CutSuffix(f.Name, ".yaml")
			want, golden := texts[name+".nad"]
			if !isCase || !golden {
				continue
			}
			n++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) { s.define(t, f.Data, want) })
		}
	}
	if n < 50 {
		t.Errorf("%d cases, there were more than 50", n)
	}
}

// define makes one network and wants its NetworkAttachmentDefinition.
func (s *Server) define(t *testing.T, text []byte, want string) {
	t.Helper()
	config := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &config.Object); err != nil {
		t.Fatal(err)
	}
	config.SetAPIVersion("spiderpool.spidernet.io/v2beta1")
	config.SetKind("SpiderMultusConfig")
	if config.GetNamespace() == "" {
		config.SetNamespace("spiderpool")
	}
	if config.GetName() == "" {
		config.SetName("rail")
	}
	made := s.Make(t, config)
	nad := &cniv1.NetworkAttachmentDefinition{}
	Eventually(t, func() string {
		name, _, _ := unstructured.NestedString(s.Lookup(t, made).Object, "status", "networkAttachmentDefinition")
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: made.GetNamespace(), Name: name}, nad); err != nil {
			return err.Error()
		}
		return ""
	})
	if owner := metav1.GetControllerOf(nad); owner == nil || owner.UID != made.GetUID() {
		t.Errorf("owners %v, want the SpiderMultusConfig", nad.OwnerReferences)
	}
	if diff := cmp.Diff(want, rendered(t, nad)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.End(t, made)
	s.endDefinitions(t)
}

// bookkeeping is the annotation in which the controller keeps which others are
// its own. It comes with the object, and is not of the network.
const bookkeeping = "railhead.io/annotations"

// rendered is a NetworkAttachmentDefinition as the golden files have it.
func rendered(t *testing.T, nad *cniv1.NetworkAttachmentDefinition) string {
	t.Helper()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s/%s\n", nad.Namespace, nad.Name)
	for _, key := range sortedKeys(nad.Annotations) {
		if key == bookkeeping {
			continue
		}
		fmt.Fprintf(&text, "%s: %s\n", key, nad.Annotations[key])
	}
	if nad.Spec.Config == "" {
		text.WriteString("no config")
	} else if err := json.Indent(&text, []byte(nad.Spec.Config), "", "  "); err != nil {
		t.Fatal(err)
	}
	return text.String() + "\n"
}
