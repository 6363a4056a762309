package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/golden"
)

// TestAcceptance applies the manifests of the requirements as they stand, twice,
// and has the networks that come of them. What kubectl prints, warnings too, and
// each NetworkAttachmentDefinition are in files beside the manifest.
func TestAcceptance(t *testing.T) {
	s := Exclusive(t)
	s.Configure(t, usual)
	s.Control(t, Replica{})
	s.namespace(t, "spiderpool", nil)
	files, err := filepath.Glob("testdata/acceptance/*/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("manifests: %v, %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")
		t.Run(name, func(t *testing.T) { s.accept(t, file, name) })
	}
}

func (s *Server) accept(t *testing.T, file, name string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects := inDefault(Objects(t, string(text)))
	first := s.MustApply(t, string(text))
	before := s.generations(t, objects)
	second := s.MustApply(t, string(text))
	if after := s.generations(t, objects); !slices.Equal(before, after) {
		t.Errorf("applied again, specs change: generations %v, then %v", before, after)
	}
	golden.Equal(t, "testdata/"+name+".kubectl", fmt.Sprintf("%s%s# again\n%s%s", first.Stdout, withoutLag(first.Stderr, objects), second.Stdout, second.Stderr))
	var networks []client.ObjectKey
	for _, o := range objects {
		if o.GetKind() == "SpiderMultusConfig" {
			networks = append(networks, client.ObjectKeyFromObject(o))
		}
	}
	if len(networks) > 0 {
		golden.Equal(t, "testdata/"+name+".nads", s.definitions(t, networks))
	}
	s.End(t, objects...)
	s.endDefinitions(t)
}

// withoutLag leaves out warnings that a pool is not there which is in the same
// manifest: a replica may hear of it a moment later than of what refers to it.
func withoutLag(stderr string, objects []*unstructured.Unstructured) string {
	var text strings.Builder
	for line := range strings.Lines(stderr) {
		late := func(o *unstructured.Unstructured) bool {
			return strings.Contains(line, fmt.Sprintf("there is no SpiderIPPool %q", o.GetName()))
		}
		if !slices.ContainsFunc(objects, late) {
			text.WriteString(line)
		}
	}
	return text.String()
}

// inDefault gives objects without a namespace that of kubectl.
func inDefault(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, o := range objects {
		switch o.GetKind() {
		case "Pod", "Deployment", "DaemonSet":
			if o.GetNamespace() == "" {
				o.SetNamespace("default")
			}
		}
	}
	return objects
}

func (s *Server) generations(t *testing.T, objects []*unstructured.Unstructured) []int64 {
	t.Helper()
	var all []int64
	for _, o := range objects {
		found := s.Lookup(t, o)
		if found == nil {
			t.Fatalf("%s is not there after it was applied", title(o))
		}
		all = append(all, found.GetGeneration())
	}
	return all
}

// definitions waits for the NetworkAttachmentDefinitions of those names and
// prints them.
func (s *Server) definitions(t *testing.T, names []client.ObjectKey) string {
	t.Helper()
	var text bytes.Buffer
	for _, name := range names {
		var nad cniv1.NetworkAttachmentDefinition
		Eventually(t, func() string {
			if err := s.Get(t.Context(), name, &nad); err != nil {
				return err.Error()
			}
			return ""
		})
		printDefinition(t, &text, &nad)
	}
	return text.String()
}

// printDefinition prints what we say in a NetworkAttachmentDefinition.
func printDefinition(t *testing.T, text *bytes.Buffer, nad *cniv1.NetworkAttachmentDefinition) {
	t.Helper()
	fmt.Fprintf(text, "%s/%s\n", nad.Namespace, nad.Name)
	for _, owner := range nad.OwnerReferences {
		fmt.Fprintf(text, "owner %s %s %s controller=%v\n", owner.APIVersion, owner.Kind, owner.Name, owner.Controller != nil && *owner.Controller)
	}
	printMap(text, "label", nad.Labels)
	printMap(text, "annotation", nad.Annotations)
	if nad.Spec.Config != "" {
		if err := json.Indent(text, []byte(nad.Spec.Config), "", "  "); err != nil {
			t.Fatalf("%s: config: %v", nad.Name, err)
		}
		text.WriteString("\n")
	}
	text.WriteString("\n")
}

func printMap(text *bytes.Buffer, what string, m map[string]string) {
	for _, key := range sortedKeys(m) {
		fmt.Fprintf(text, "%s %s: %s\n", what, key, m[key])
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// endDefinitions deletes what the garbage collector of a cluster would.
func (s *Server) endDefinitions(t *testing.T) {
	t.Helper()
	var nads cniv1.NetworkAttachmentDefinitionList
	if err := s.List(t.Context(), &nads); err != nil {
		t.Fatal(err)
	}
	for i := range nads.Items {
		if err := s.Delete(t.Context(), &nads.Items[i]); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// namespace makes a namespace, or annotates the one that is there.
func (s *Server) namespace(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	err := s.Create(t.Context(), n)
	if apierrors.IsAlreadyExists(err) {
		err = s.Update(t.Context(), n)
	}
	if err != nil {
		t.Fatal(err)
	}
}
