package nad

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// FuzzFor: of every network that is accepted, a NetworkAttachmentDefinition is
// made that its own review accepts and libcni loads, twice the same.
func FuzzFor(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range archive.Files {
			if strings.HasSuffix(c.Name, ".yaml") {
				f.Add(c.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		obj := &v2beta1.SpiderMultusConfig{}
		if yaml.Unmarshal(text, obj) != nil {
			return
		}
		obj.Namespace, obj.Name = "spiderpool", "rail" // the API server's to check
		c := policy.NewCatalog()
		c.Put(obj)
		n, ok := c.Network(obj.Namespace, obj.Name)
		if !ok {
			return
		}
		made, err := For(n)
		if err != nil {
			t.Fatal(err)
		}
		loads(t, made)
		if again, err := For(n); err != nil || again.Spec.Config != made.Spec.Config {
			t.Fatalf("a second time: %v %s", err, again.Spec.Config)
		}
	})
}
