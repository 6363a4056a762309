package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

// same is how objects are compared: nil and empty are one, times have seconds,
// as in JSON, where the zero time is null, and of fields in the API server's
// notes the order says nothing.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b metav1.Time) bool { return a.Unix() == b.Unix() }),
	cmp.Transformer("time", func(t *metav1.Time) metav1.Time {
		if t == nil {
			return metav1.Time{}
		}
		return *t
	}),
	cmp.Transformer("fields", func(f metav1.FieldsV1) (fields any) {
		if json.Unmarshal(f.GetRawBytes(), &fields) != nil {
			return f.GetRawString()
		}
		return fields
	}),
}

// FuzzDecode holds that no bytes panic, and that what is accepted means the same
// after it was written and read again, as JSON and as YAML.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		stream, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stream)
		for _, d := range Documents(stream) {
			f.Add(d.Data)
		}
	}
	for _, rest := range []string{
		`metadata: {labels: {"\u00a0#": "\x7f\ufffe\x85", "<<": "\n "}}`, // signs that YAML has in quotes only
		`metadata: {creationTimestamp: "9999-12-31T23:59:59-23:59", deletionTimestamp: "0001-01-01T00:00:00Z"}`,
		`metadata: {deletionTimestamp: "0001-01-01T00:00:00Z", managedFields: [{fieldsV1: {b: 1e3, a: "<"}}]}`,
		`spec: {ips: [], routes: [~], podAffinity: {matchExpressions: [{values: []}]}}`,
	} {
		f.Add([]byte("apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\n" + rest))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, d := range Documents(stream) {
			want, errs, err := d.Decode()
			for _, e := range errs {
				if line := d.LineOf(e.Field); line < d.Line || e.Error() == "" {
					t.Errorf("%v is in line %d of a document that begins in %d", e, line, d.Line)
				}
			}
			switch {
			case err == nil && len(errs) == 0:
				roundTrip(t, want)
			case err != nil && want != nil:
				t.Errorf("%q is an object and none: %v", d.Data, err)
			}
		}
	})
}

// TestRoundTrip holds that objects with anything in any field are accepted, and
// come out as they went in.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	fill := randfill.NewWithSeed(5).NilChance(0.2).NumElements(0, 3).MaxDepth(12).Funcs(
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(1<<32), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) },
	)
	for _, k := range kinds {
		for range 20 {
			o := k.empty()
			fill.Fill(o)
			o.GetObjectKind().SetGroupVersionKind(k.version.WithKind(k.kind))
			roundTrip(t, o)
		}
	}
}

// roundTrip holds that an object is the same after it was written and read.
func roundTrip(t *testing.T, want Object) {
	t.Helper()
	written, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	texts := [][]byte{written}
	if !bytes.Contains(written, []byte(`"\u003c\u003c":`)) { // "<<", which the library writes without quotes, as if to merge
		asYAML, err := yaml.JSONToYAML(escaped(written))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, asYAML)
	}
	for _, data := range texts {
		got, errs, err := Decode(data)
		if err != nil || len(errs) > 0 {
			t.Fatalf("%v %v:\n%s", err, errs, data)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("(-want +got):\n%s\n%s", diff, data)
		}
	}
}

// escaped returns JSON with \u escapes: some of Unicode YAML has no other way.
func escaped(written []byte) []byte {
	var b []byte
	for _, r := range string(written) {
		if r < 0x7f || r > 0xffff {
			b = utf8.AppendRune(b, r)
		} else {
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
