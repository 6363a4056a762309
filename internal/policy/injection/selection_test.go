package injection

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"railhead/internal/policy/annotation"
)

// FuzzSelections: a list that is read and written is the same list, element for
// element with all keys; and the short and the JSON form of it are equal.
func FuzzSelections(f *testing.F) {
	for _, seed := range []string{
		"", " ", "a", "a,b", "ns/a@net1", " ns / a @ net1 ,b", "a.b", `[]`, `[{"name":"a"}]`, `[{"name":"a","namespace":"ns","interface":"net1"}]`,
		`[{"name":"a","ips":["10.0.0.1/24"],"example.com/x":{"y":[1e9,null,"<>"]}}]`, `[{"Name":"a","name":"b"}]`, `[null]`, `{"name":"a"}`,
		`["a"]`, `[{"name":"\ud800"}]`, "a@b@c", "a//b", `a"b`, "0@\x9a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		selections, err := parseSelections(list)
		if err != nil {
			return
		}
		written, err := formatSelections(selections)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", list, err)
		}
		again, err := parseSelections(written)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", list, written, err)
		}
		if diff := cmp.Diff(selections, again, cmpopts.IgnoreUnexported(selection{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q is %q in JSON (-read +again):\n%s", list, written, diff)
		}
		keepsElements(t, selections, written)
	})
}

// keepsElements wants each element of a JSON list as it was, but for space.
func keepsElements(t *testing.T, selections []selection, written string) {
	t.Helper()
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(written), &elements); err != nil {
		t.Fatal(err)
	}
	for i, s := range selections {
		if s.written == nil {
			continue
		}
		var want bytes.Buffer
		if err := json.Compact(&want, s.written); err != nil {
			t.Fatal(err)
		}
		if want.String() != string(elements[i]) {
			t.Fatalf("element %d was %s and is %s", i, &want, elements[i])
		}
	}
}

// TestSameGrammar: what a pod's annotation may say is the same for whoever checks
// manifests and whoever injects networks. Only values that injection passes on as
// they are, such as addresses, are the business of the first alone.
func TestSameGrammar(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", maxInterfaceName+1)
	for list, accepted := range map[string]bool{
		"": true, " ": true, "a": true, "a,b": true, " a , b ": true, "ns/a@net1": true, " ns / a @ net1 ,b": true, "a.b": true, "ns/a.b": true,
		"a,": false, ",a": false, "a,,b": false, "/a": false, " /a": false, "ns/": false, "ns/ @net1": false, "a/b/c": false, "A": false, "N/a": false,
		"n.s/a": false, "a b": false, "a_b": false, "a@": false, "a@ ": false, "a@b@c": false, "ns@x/a": false, "a@n:1": false, "a@n t": false,
		"a@n\u00a0t": false, "a@.": false, "a@..": false, "a@\x9a": false, "a@" + long: false, "a@" + long[1:]: true,
		`[]`: true, `[{"name":"a"}]`: true, `[{"name":"a","namespace":"ns","interface":"net1","x.y":[1]}]`: true, `[{"name":"a","x":[1]}]`: false, `[{"NAME":"a","Ips":[]}]`: true,
		`[{"name":"a","interfaceRequest":"net1"}]`: true, `[{"name":"a","bandwidth":{"rate":1}}]`: false, `[{"name":"a","portMappings":[{"hostIp":""},{"port":1}]}]`: false, `[{"name":"a","namespace":"","interface":""}]`: true,
		`[null]`: false, `null`: true, `{"name":"a"}`: false, `["a"]`: false, `[{"name":""}]`: false, `[{}]`: false, `[{"name":5}]`: false, `[{"name":"A"}]`: false,
		`[{"name":"ns/a"}]`: false, `[{"name":"a","namespace":"N"}]`: false, `[{"name":"a","namespace":5}]`: false, `[{"name":"a","interface":"n/1"}]`: false,
		`[{"name":"a","interface":"` + long + `"}]`: false, `[{"name":"a"`: false, `[{"name":"a"}] x`: false, `a"b`: false, `a,{`: false,
	} {
		selections, err := parseSelections(list)
		if (err == nil) != accepted {
			t.Errorf("%q for injection: %v, want accepted %t", list, err, accepted)
		}
		attachments, errs := annotation.Networks(nil, list)
		if (len(errs) == 0) != accepted {
			t.Errorf("%q in a manifest: %v, want accepted %t", list, errs, accepted)
		}
		if !accepted {
			continue
		}
		var same []selection
		for _, a := range attachments {
			same = append(same, selection{Name: a.Name, Namespace: a.Namespace, Interface: a.Interface})
		}
		if diff := cmp.Diff(selections, same, cmpopts.IgnoreUnexported(selection{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-injection +manifest):\n%s", list, diff)
		}
	}
}
