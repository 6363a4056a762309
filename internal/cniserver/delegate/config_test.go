package delegate

import (
	"encoding/json"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
)

// TestWithPrevResult has a second plugin be given what the first answered, in the
// version of its configuration.
func TestWithPrevResult(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"": "none", "0.2.0": "none", "0.3.0": "0.3.0 10.1.0.5/16", "0.3.1": "0.3.1 10.1.0.5/16", "0.4.0": "0.4.0 10.1.0.5/16",
		"1.0.0": "1.0.0 10.1.0.5/16", "1.1.0": "1.1.0 10.1.0.5/16",
	} {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "vendor", "meta")
			result, err := n.Add(t.Context(), n.call(t, script{Answer: answered}, nil))
			if err != nil {
				t.Fatal(err)
			}
			c := n.call(t, script{}, map[string]any{"cniVersion": version, "type": "meta"})
			if c.Config, err = WithPrevResult(c.Config, result); err != nil {
				t.Fatal(err)
			}
			if err := n.Del(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			if got := prevResult(t, n.given(t)[1]); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// prevResult is the version and the address of what a plugin was given.
func prevResult(t *testing.T, g given) string {
	t.Helper()
	var c struct {
		Prev *struct {
			CNIVersion string
			IPs        []struct{ Address string }
		} `json:"prevResult"`
	}
	if err := json.Unmarshal(g.Config, &c); err != nil {
		t.Fatal(err)
	}
	if c.Prev == nil {
		return "none"
	}
	return c.Prev.CNIVersion + " " + c.Prev.IPs[0].Address
}

func TestWithPrevResultRefuses(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{`: "decoding", `{"cniVersion":"one"}`: "cniVersion: ", `{"cniVersion":"9.0.0"}`: "prevResult in the configuration's cniVersion 9.0.0: ",
	} {
		if got, err := WithPrevResult([]byte(config), &types100.Result{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %s", config, got, err, want)
		}
	}
}

// FuzzWith sets a value in configurations: all others stay as written.
func FuzzWith(f *testing.F) {
	for _, text := range []string{`{}`, `null`, `[]`, `{"a":1e999,"prevResult":{}}`, `{"a":12345678901234567890,"b":"\u00e9"}`, `{"x":`, `{"prevResult":1,"prevresult":2}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		var before, after map[string]json.RawMessage
		bad := json.Unmarshal(config, &before) != nil || before == nil
		got, err := with(config, map[string]any{"prevResult": map[string]any{"ips": []string{}}})
		if bad != (err != nil) {
			t.Fatalf("error %v of %q", err, config)
		}
		if err != nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatal(err)
		}
		if string(after["prevResult"]) != `{"ips":[]}` {
			t.Errorf("prevResult is %s", after["prevResult"])
		}
		before["prevResult"] = after["prevResult"]
		if diff := cmp.Diff(values(t, before), values(t, after)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// values are fields as encoded, since an encoder may write a text in other ways.
func values(t *testing.T, fields map[string]json.RawMessage) string {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
