package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// refusals are the cases of one file of testdata/refused: an object that is
// accepted, and changes of it, each of which makes exactly one thing wrong.
//
//	-- good.yaml --        the object
//	-- exists.yaml --      what is there in all cases
//	-- NAME --             a refusal as YAML
//	-- NAME/kubectl --     what kubectl prints
//	-- NAME/offline --     what `railhead validate` would say
type refusals struct {
	file   string
	good   *unstructured.Unstructured
	exists []*unstructured.Unstructured
	cases  []*refusal

	comment []byte
	head    []txtar.File
}

// refusal is one case.
type refusal struct {
	// At is the path of what is wrong. The texts must have it.
	At string `json:"at"`
	// Patch is a JSON merge patch of the good object, which is created so.
	Patch map[string]any `json:"patch,omitempty"`
	// Update is a JSON merge patch of the good object, which is there.
	Update map[string]any `json:"update,omitempty"`
	// Delete has the good object deleted.
	Delete bool `json:"delete,omitempty"`
	// Object is another object that is created while the good one is there.
	Object map[string]any `json:"object,omitempty"`
	// Status is what the good object has before it is updated or deleted.
	Status map[string]any `json:"status,omitempty"`
	// There are further objects that are there.
	There []map[string]any `json:"there,omitempty"`
	// SchemaOnly says that no rule refuses it, only the API server's schema.
	SchemaOnly bool `json:"schemaOnly,omitempty"`
	// OfflineOnly says that the API server accepts it, of a kind that no webhook is for.
	OfflineOnly bool `json:"offlineOnly,omitempty"`
	// Config is the cluster's configuration.
	Config map[string]any `json:"config,omitempty"`

	name             string
	text             []byte
	kubectl, offline string
	set              *refusals
}

const (
	goodFile, existsFile     = "good.yaml", "exists.yaml"
	kubectlPart, offlinePart = "/kubectl", "/offline"
)

// allRefusals reads testdata/refused.
func allRefusals(t *testing.T) []*refusals {
	t.Helper()
	files, err := filepath.Glob("testdata/refused/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var all []*refusals
	for _, file := range files {
		all = append(all, readRefusals(t, file))
	}
	return all
}

func readRefusals(t *testing.T, file string) *refusals {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := &refusals{file: file, comment: archive.Comment}
	last := &refusal{}
	for _, f := range archive.Files {
		switch {
		case f.Name == goodFile:
			set.good = Objects(t, string(f.Data))[0]
			set.head = append(set.head, f)
		case f.Name == existsFile:
			set.exists = Objects(t, string(f.Data))
			set.head = append(set.head, f)
		case f.Name == last.name+kubectlPart:
			last.kubectl = string(f.Data)
		case f.Name == last.name+offlinePart:
			last.offline = string(f.Data)
		case strings.Contains(f.Name, "/"):
			t.Fatalf("%s: %s does not follow its case", file, f.Name)
		default:
			last = &refusal{name: f.Name, text: f.Data, set: set}
			if err := yaml.UnmarshalStrict(f.Data, last); err != nil {
				t.Fatalf("%s: %s: %v", file, f.Name, err)
			}
			set.cases = append(set.cases, last)
		}
	}
	if set.good == nil {
		t.Fatalf("%s: no %s", file, goodFile)
	}
	return set
}

// write writes the file with the texts that the cases have now.
func (s *refusals) write(t *testing.T) {
	t.Helper()
	archive := &txtar.Archive{Comment: s.comment, Files: s.head}
	for _, c := range s.cases {
		archive.Files = append(archive.Files, txtar.File{Name: c.name, Data: c.text})
		if c.kubectl != "" {
			archive.Files = append(archive.Files, txtar.File{Name: c.name + kubectlPart, Data: []byte(c.kubectl)})
		}
		if c.offline != "" {
			archive.Files = append(archive.Files, txtar.File{Name: c.name + offlinePart, Data: []byte(c.offline)})
		}
	}
	if err := os.WriteFile(s.file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wrong is the object that is refused.
func (c *refusal) wrong(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	switch {
	case c.Object != nil:
		return &unstructured.Unstructured{Object: c.Object}
	case c.Delete:
		return c.set.good
	case c.Update != nil:
		return merged(t, c.set.good, c.Update)
	}
	return merged(t, c.set.good, c.Patch)
}

// goodIsThere says whether the case begins with the good object stored.
func (c *refusal) goodIsThere() bool { return c.Update != nil || c.Delete || c.Object != nil }

// there are the objects that the case begins with, without the good one.
func (c *refusal) there() []*unstructured.Unstructured {
	objects := c.set.exists
	for _, o := range c.There {
		objects = append(objects[:len(objects):len(objects)], &unstructured.Unstructured{Object: o})
	}
	return objects
}

// merged is an object with a JSON merge patch.
func merged(t *testing.T, o *unstructured.Unstructured, patch map[string]any) *unstructured.Unstructured {
	t.Helper()
	document, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	document, err = jsonpatch.MergePatch(document, text)
	if err != nil {
		t.Fatal(err)
	}
	result := &unstructured.Unstructured{}
	if err := json.Unmarshal(document, &result.Object); err != nil { // with numbers as floats, which print alike
		t.Fatal(err)
	}
	return result
}

// strict is in what the API server says before any webhook, of a field that its
// schema lacks, where it reads on: kubectl names the file then.
const strict = "strict decoding error: "

// TestRefusals holds the cases themselves to account.
func TestRefusals(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	n := 0
	for _, set := range allRefusals(t) {
		for _, c := range set.cases {
			n++
			id := set.file + ": " + c.name
			wrong, err := c.wrong(t).MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			rest, err := json.Marshal([]any{c.Update != nil, c.Delete, c.Status, c.There, c.Config})
			if err != nil {
				t.Fatal(err)
			}
			key := string(wrong) + string(rest)
			if other, ok := seen[key]; ok {
				t.Errorf("%s is the same as %s", id, other)
			}
			seen[key] = id
			if !c.SchemaOnly {
				c.check(t, id, "offline", c.offline)
			}
			if c.OfflineOnly {
				continue
			}
			c.check(t, id, "kubectl", c.kubectl)
			if name := c.wrong(t).GetName(); !strings.Contains(c.kubectl, name) && !strings.Contains(c.kubectl, strict) {
				t.Errorf("%s: kubectl's text lacks the object's name %q", id, name)
			}
		}
	}
	if n < 200 {
		t.Errorf("%d cases, there were more than 200", n)
	}
}

// check wants a text that says where something is wrong.
func (c *refusal) check(t *testing.T, id, whose, text string) {
	t.Helper()
	switch {
	case c.At == "":
		t.Errorf("%s: does not say where it is wrong", id)
	case strings.TrimSpace(text) == "":
		t.Errorf("%s: no %s text: run with -update", id, whose)
	case !strings.Contains(text, c.At):
		t.Errorf("%s: the %s text lacks the path %q:\n%s", id, whose, c.At, text)
	}
}
