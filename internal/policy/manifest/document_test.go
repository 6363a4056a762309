package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestDocuments cuts streams as they are written by people and programs.
func TestDocuments(t *testing.T) {
	t.Parallel()
	type doc struct {
		line int
		data string
	}
	tests := []struct {
		name, stream string
		want         []doc
	}{
		{"none", "", nil},
		{"nothing but comments", "# a\n---\n\n# b\n--- # c\n...\n", nil},
		{"one", "a: 1\n", []doc{{1, "a: 1\n"}}},
		{"no newline at the end", "a: 1\n---\nb: 2", []doc{{1, "a: 1\n"}, {3, "b: 2"}}},
		{"licence first", "# Licence\n\n---\n# name\na: 1\n# inside\n", []doc{{5, "a: 1\n# inside\n"}}},
		{"CRLF", "a: 1\r\n---\r\nb: 2\r\n", []doc{{1, "a: 1\r\n"}, {3, "b: 2\r\n"}}},
		{"on the marker's line", "--- {a: 1}\n---\tb\n", []doc{{1, " {a: 1}\n"}, {2, "\tb\n"}}},
		{"directive and end", "%YAML 1.1\n---\na: 1\n...\n%YAML 1.1\n---\nb: 2\n", []doc{{3, "a: 1\n"}, {7, "b: 2\n"}}},
		{"no marker", "a: |\n  ---\n  b\n---c: 1\n----: 2\n", []doc{{1, "a: |\n  ---\n  b\n---c: 1\n----: 2\n"}}},
		{"no-break space before #", "\u00a0#a: 1\n", []doc{{1, "\u00a0#a: 1\n"}}},
		{"byte order mark", "\xef\xbb\xbfa: 1\n", []doc{{1, "a: 1\n"}}},
		{
			"list", "---\napiVersion: v1\nkind: List\nitems:\n- a: 1\n- b: 0x2\n  c: [~]\n- 3\n---\nd: 4\n",
			[]doc{{5, `{"a":1}`}, {6, `{"b":2,"c":[null]}`}, {8, "3"}, {10, "d: 4\n"}},
		},
		{"list of JSON", "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{\"a\":\n1}]}", []doc{{2, `{"a":1}`}}},
		{"another's list", "apiVersion: x/v1\nkind: List\nitems: []\n", []doc{{1, "apiVersion: x/v1\nkind: List\nitems: []\n"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []doc
			for _, d := range Documents([]byte(test.stream)) {
				got = append(got, doc{d.Line, string(d.Data)})
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(doc{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLineOf finds fields, and of those that are not there what is around them.
func TestLineOf(t *testing.T) {
	t.Parallel()
	docs := Documents([]byte("# begin\n---\nmetadata:\n  labels:\n    a.b/c: d\n    a: x\nspec:\n  ips:\n  - 1\n  -\n    x: 2\n"))
	for path, want := range map[string]int{
		"":                        3,
		"metadata":                3,
		"metadata.labels[a.b/c]":  5,
		"metadata.labels[a]":      6,
		"metadata.labels[b]":      4,
		"metadata.annotations[x]": 3,
		"spec.ips[0]":             9,
		"spec.ips[1].x":           11,
		"spec.ips[2]":             8,
		"spec.ipsilon":            7,
		"status":                  3,
	} {
		if got := docs[0].LineOf(path); got != want {
			t.Errorf("%q is in line %d, want %d", path, got, want)
		}
	}
	if got := (Document{Line: 7}).LineOf("spec"); got != 7 {
		t.Errorf("a document that could not be read has its field in line %d, want 7", got)
	}
}

// TestYAMLAsKubectl holds that scalars mean what they mean to kubectl.
func TestYAMLAsKubectl(t *testing.T) {
	t.Parallel()
	scalars := strings.FieldsSeq(`y n Y N yes No on Off TRUE ~ null Null 010 0o10 0x10 0b11 1_000 1e3 1.0 12e03 2001-01-01 1:20 +5 -0 .5 5.
		0x8001 15b3 1e5 08 0_8 = << '' "yes" '1' 9223372036854775807 18446744073709551615 1.5e30 0000:af:00.0 10.0.0.1 !!str|5 !!int|'5' !x|y !!binary|YQ==`)
	for s := range scalars {
		s = strings.ReplaceAll(s, "|", " ")
		for _, doc := range []string{"a: " + s, "- " + s, s + ": a"} {
			want, err := yaml.YAMLToJSON([]byte(doc))
			if err != nil {
				continue // such as a key of !!binary
			}
			v, err := parse([]byte(doc), 1)
			if err != nil {
				if s != "<<" {
					t.Errorf("%q: %v", doc, err)
				}
				continue
			}
			if got := string(v.appendJSON(nil)); got != string(want) {
				t.Errorf("%q is %s, and %s to kubectl", doc, got, want)
			}
		}
	}
}

// TestAliases holds that aliases are written out, and that a few lines of them do
// not become what no memory holds.
func TestAliases(t *testing.T) {
	t.Parallel()
	v, err := parse([]byte("a: &x {b: [1]}\nc: *x\nd: {<<: [*x, {b: 2, e: 3}], f: 4}\n"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(v.appendJSON(nil)), `{"a":{"b":[1]},"c":{"b":[1]},"d":{"f":4,"b":[1],"e":3}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n" +
		"d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n"
	for _, doc := range []string{bomb, "a: &a [*a]", "a: &a {<<: *a}"} {
		if _, err := parse([]byte(doc), 1); err == nil || !strings.Contains(err.Error(), "aliases") {
			t.Errorf("%q: got %v, want an error about its aliases", doc, err)
		}
	}
}

// TestDeep holds that a document may not go as deep as a stack.
func TestDeep(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"[", `{"a":`} {
		if _, _, err := Decode([]byte(strings.Repeat(open, 100_000))); err == nil {
			t.Errorf("100,000 times %s was taken", open)
		}
	}
}
