package webhook

import (
	"bytes"
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
)

func TestPatch(t *testing.T) {
	for _, tt := range []struct {
		name                string
		sent, before, after string
		want                string // operations
	}{
		{"nothing", `{"a":1}`, `{"a":1}`, `{"a":1}`, `null`},
		{"what we do not know stays", `{"a":1,"x":{"y":2}}`, `{"a":1}`, `{"a":2}`, `[{"op":"replace","path":"/a","value":2}]`},
		{"a parent that was not sent", `{}`, `{"a":{}}`, `{"a":{"b":1}}`, `[{"op":"add","path":"/a","value":{"b":1}}]`},
		{"a parent that was sent as null", `{"a":null}`, `{}`, `{"a":{"b":1}}`, `[{"op":"replace","path":"/a","value":{"b":1}}]`},
		{"in a list", `{"l":[{"x":1},{"a":1}]}`, `{"l":[{},{"a":1}]}`, `{"l":[{},{"a":2}]}`, `[{"op":"replace","path":"/l/1/a","value":2}]`},
		{"a list of another length", `{"l":[1]}`, `{"l":[1]}`, `{"l":[1,2]}`, `[{"op":"replace","path":"/l","value":[1,2]}]`},
		{"removed", `{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"b":2}`, `[{"op":"remove","path":"/a"}]`},
		{"removed where it was not sent", `{"b":2}`, `{"a":0,"b":2}`, `{"b":2}`, `null`},
		{"slash and tilde", `{"a/~b":1}`, `{"a/~b":1}`, `{"a/~b":2}`, `[{"op":"replace","path":"/a~1~0b","value":2}]`},
		{"numbers beyond a double", `{"n":9007199254740993}`, `{"n":9007199254740993}`, `{"n":9007199254740992}`, `[{"op":"replace","path":"/n","value":9007199254740992}]`},
	} {
		operations, err := patch([]byte(tt.sent), []byte(tt.before), []byte(tt.after))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := json.Marshal(operations)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// FuzzPatch: where an object was sent as we know it, the patch makes of it what it
// became.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,{"c":null}]},"d/e":"~"}`), []byte(`{"a":{"b":[1,{"c":2}]},"f":[]}`))
	f.Add([]byte(`{"a":null}`), []byte(`{"a":{}}`))
	f.Add([]byte(`{"n":{"m":1}}`), []byte(`{"n":{}}`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		if bytes.Contains(before, []byte(`""`)) || bytes.Contains(after, []byte(`""`)) {
			return // the library that applies patches does not find empty keys, and objects have none
		}
		var old, want map[string]any
		if json.Unmarshal(before, &old) != nil || json.Unmarshal(after, &want) != nil || old == nil || want == nil {
			return
		}
		operations, err := patch(before, before, after)
		if err != nil {
			return // such as keys that differ in case alone
		}
		data, err := json.Marshal(operations)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := jsonpatch.DecodePatch(data)
		if err != nil {
			t.Fatal(err)
		}
		// Written again, so that a key that is given twice is there once.
		sent, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := decoded.Apply(sent)
		if err != nil {
			t.Fatalf("%v: %s on %s", err, data, sent)
		}
		var got map[string]any
		if err := json.Unmarshal(changed, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", data, sent, diff)
		}
	})
}
