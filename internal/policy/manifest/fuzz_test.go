package manifest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

// same is how objects are compared: nil and empty are one, and times have
// seconds, as in JSON.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b metav1.Time) bool { return a.Unix() == b.Unix() }),
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
	asYAML, err := yaml.JSONToYAML(written)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{written, asYAML} {
		got, errs, err := Decode(data)
		if err != nil || len(errs) > 0 {
			t.Fatalf("%v %v:\n%s", err, errs, data)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("(-want +got):\n%s\n%s", diff, data)
		}
	}
}
