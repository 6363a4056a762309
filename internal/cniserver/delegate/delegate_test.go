package delegate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
)

const answered = `{"cniVersion":"1.0.0","interfaces":[{"name":"net1","sandbox":"/run/netns/p1"}],"ips":[{"address":"10.1.0.5/16","interface":0}]}`

// TestEnvironment wants that of the CNI, and nothing of this process.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "KUBERNETES_SERVICE_HOST", "TOKEN"} {
		t.Setenv(name, "ours")
	}
	n := newNode(t, "vendor")
	n.confDir = "/none"
	c := n.call(t, script{Answer: answered}, nil)
	if _, err := n.Add(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := n.Del(t.Context(), Call{ContainerID: c.ContainerID, IfName: c.IfName, Path: "relative:" + n.bin + ":/none", Type: c.Type, Config: c.Config}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(n.Check(t.Context(), c), n.Status(t.Context(), c), n.GC(t.Context(), c, nil)); err != nil {
		t.Fatal(err)
	}
	path, bin := "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "CNI_PATH="+n.bin
	full := []string{"CNI_CONTAINERID=c1", "CNI_NETNS=/run/netns/p1", "CNI_IFNAME=net1", "CNI_ARGS=" + c.Args, bin}
	want := [][]string{
		append([]string{path, "CNI_COMMAND=ADD"}, full...),
		{path, "CNI_COMMAND=DEL", "CNI_CONTAINERID=c1", "CNI_IFNAME=net1", bin + ":/none"},
		append([]string{path, "CNI_COMMAND=CHECK"}, full...),
		{path, "CNI_COMMAND=STATUS", bin},
		{path, "CNI_COMMAND=GC", bin},
	}
	var got [][]string
	for _, g := range n.given(t) {
		got = append(got, g.Env)
		if g.Dir != "/" {
			t.Errorf("runs in %s, want /", g.Dir)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStdin wants a configuration to arrive as it is.
func TestStdin(t *testing.T) {
	t.Parallel()
	n := newNode(t, "vendor")
	c := n.call(t, script{Answer: answered}, map[string]any{"big": json.RawMessage("12345678901234567890")})
	if _, err := n.Add(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := n.given(t); len(got) != 1 || !bytes.Equal(got[0].Config, c.Config) {
		t.Errorf("got %s, want %s", got, c.Config)
	}
}

// TestResultVersions has plugins answer in all versions.
func TestResultVersions(t *testing.T) {
	t.Parallel()
	const (
		first = `"ip4":{"ip":"10.1.0.5/16","gateway":"10.1.0.1","routes":[{"dst":"0.0.0.0/0"}]}`
		third = `"interfaces":[{"name":"net1","sandbox":"/n"}],"ips":[{"version":"4","address":"10.1.0.5/16","gateway":"10.1.0.1","interface":0}]`
		last  = `"interfaces":[{"name":"net1","sandbox":"/n"}],"ips":[{"address":"10.1.0.5/16","gateway":"10.1.0.1","interface":0}]`
	)
	tests := []struct{ version, config, answer string }{
		{"none", "", `{` + first + `}`},
		{"0.1.0", "0.1.0", `{"cniVersion":"0.1.0",` + first + `}`},
		{"0.2.0", "0.2.0", `{"cniVersion":"0.2.0",` + first + `}`},
		{"0.3.0", "0.3.0", `{"cniVersion":"0.3.0",` + third + `}`},
		{"0.3.1", "0.3.1", `{"cniVersion":"0.3.1",` + third + `}`},
		{"0.4.0", "0.4.0", `{"cniVersion":"0.4.0",` + third + `}`},
		{"1.0.0", "1.0.0", `{"cniVersion":"1.0.0",` + last + `}`},
		{"1.1.0", "1.1.0", `{"cniVersion":"1.1.0",` + last + `}`},
		{"the configuration's", "1.0.0", `{` + last + `}`},
		{"older than the configuration's", "1.0.0", `{"cniVersion":"0.3.1",` + third + `}`},
	}
	n := newNode(t, "vendor")
	for _, tt := range tests {
		t.Run(tt.version, func(t *testing.T) {
			t.Parallel()
			result, err := n.Add(t.Context(), n.call(t, script{Answer: tt.answer}, map[string]any{"cniVersion": tt.config}))
			if err != nil {
				t.Fatal(err)
			}
			if len(result.IPs) != 1 || result.IPs[0].Address.String() != "10.1.0.5/16" || result.IPs[0].Gateway.String() != "10.1.0.1" {
				t.Errorf("got %v", result)
			}
			if result.CNIVersion != types100.ImplementedSpecVersion {
				t.Errorf("a result of %s, want %s", result.CNIVersion, types100.ImplementedSpecVersion)
			}
		})
	}
}

// TestFailures wants to be told which plugin of which network failed, and how.
func TestFailures(t *testing.T) {
	t.Parallel()
	n := newNode(t, "vendor")
	at := "network rails: plugin vendor (" + filepath.Join(n.bin, "vendor") + "): ADD: "
	long := strings.Repeat("x", maxStderr)
	tests := []struct {
		name, want string
		do         script
		code       uint
	}{
		{"its own error", at + `code 11: try later; no address (stderr: "waited")`, script{Exit: 1, Stderr: "waited\n", Answer: `{"cniVersion":"1.0.0","code":11,"msg":"try later","details":"no address"}`}, 11},
		{"its own error, and success", at + "code 7: no", script{Answer: `{"code":7,"msg":"no"}`}, 7},
		{"silent", at + "says nothing and ends with exit status 3", script{Exit: 3}, 0},
		{"stderr only", at + `says nothing and ends with exit status 3 (stderr: "panic: oh")`, script{Exit: 3, Stderr: "panic: oh"}, 0},
		{"the end of stderr", at + `says nothing and ends with exit status 3 (stderr: "` + long[1:] + `y")`, script{Exit: 3, Stderr: "first" + long + "y"}, 0},
		{"no error", at + `ends with exit status 1, and says "oops", which is no CNI error`, script{Exit: 1, Answer: "oops"}, 0},
		{"JSON, and no error", at + `ends with exit status 1, and says "{}", which is no CNI error`, script{Exit: 1, Answer: "{}"}, 0},
		{"killed", at + `ends with signal: killed, and says "`, script{Kill: true, Answer: answered}, 0},
		{"garbage", at + `its answer "oops" is no CNI result: `, script{Answer: "oops"}, 0},
		{"nothing", at + `its answer "" is no CNI result: `, script{}, 0},
		{"of the future", at + `its answer "{\"cniVersion\":\"9.0.0\"}" is no CNI result: `, script{Answer: `{"cniVersion":"9.0.0"}`}, 0},
		{"too much", at + "answers with more than 1048576 bytes", script{Answer: long, Repeat: 1 << 10}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := n.Add(t.Context(), n.call(t, tt.do, nil))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("got  %v\nwant %s", err, tt.want)
			}
			if len(err.Error()) > len(at)+2*maxStderr {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
			var e *types.Error
			if errors.As(err, &e) != (tt.code != 0) || e != nil && e.Code != tt.code {
				t.Errorf("got %v, want one of code %d", e, tt.code)
			}
		})
	}
}

// TestDelIgnoresWhatIsSaid has DEL be a success whatever is printed.
func TestDelIgnoresWhatIsSaid(t *testing.T) {
	t.Parallel()
	n := newNode(t, "vendor")
	if err := n.Del(t.Context(), n.call(t, script{Answer: "gone"}, nil)); err != nil {
		t.Error(err)
	}
}

// TestVerbsOfVersions wants nobody to be asked what the version does not have.
func TestVerbsOfVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"0.3.1": "DEL", "0.4.0": "DEL CHECK", "1.0.0": "DEL CHECK", "1.1.0": "DEL CHECK STATUS GC"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "vendor")
			c := n.call(t, script{}, map[string]any{"cniVersion": version})
			for _, do := range []func(context.Context, Call) error{n.Del, n.Check, n.Status, func(ctx context.Context, c Call) error { return n.GC(ctx, c, nil) }} {
				if err := do(t.Context(), c); err != nil {
					t.Error(err)
				}
			}
			var got []string
			for _, g := range n.given(t) {
				got = append(got, g.command())
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGCTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	n := newNode(t, "vendor")
	c := n.call(t, script{}, map[string]any{"other": true})
	for _, valid := range [][]types.GCAttachment{{{ContainerID: "c1", IfName: "net1"}}, nil} {
		if err := n.GC(t.Context(), c, valid); err != nil {
			t.Fatal(err)
		}
	}
	var got []map[string]any
	for _, g := range n.given(t) {
		got = append(got, g.fields(t))
	}
	is := []any{map[string]any{"containerID": "c1", "ifname": "net1"}}
	var want []map[string]any
	for _, list := range [][]any{is, {}} {
		want = append(want, map[string]any{
			"cniVersion": "1.1.0", "name": "rails", "type": "vendor", "other": true,
			"cni.dev/valid-attachments": list, "cni.dev/attachments": list,
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRefused has calls that no plugin is run for.
func TestRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, "vendor")
	if err := os.WriteFile(filepath.Join(n.bin, "text"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, want string
		change     func(*Call)
		is         error
	}{
		{"none", "network rails: plugin other: STATUS: no such plugin in " + n.bin + " on the node", func(c *Call) { c.Type = "other" }, ErrNotThere},
		{"a path", `network rails: plugin ../vendor: STATUS: type: "../vendor" is no name of a CNI plugin`, func(c *Call) { c.Type = "../vendor" }, nil},
		{"without a name", `network rails: plugin : STATUS: type: "" is no name`, func(c *Call) { c.Type = "" }, nil},
		{"no program", "network rails: plugin text: STATUS: " + n.bin + "/text is -rw-------: want a file that can be run", func(c *Call) { c.Type = "text" }, nil},
		{"no JSON", "network without a name: plugin vendor: STATUS: decoding", func(c *Call) { c.Config = []byte("{") }, nil},
		{"no version", "network without a name: plugin vendor: STATUS: cniVersion: ", func(c *Call) { c.Config = []byte(`{"cniVersion":"one"}`) }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := n.call(t, script{}, nil)
			tt.change(&c)
			err := n.Status(t.Context(), c)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := New(Config{HostRoot: "host", ConfDir: "etc", BinDirs: []string{"/opt", "bin"}})
	if err == nil || strings.Count(err.Error(), "want an absolute path") != 3 {
		t.Errorf("got %v, want three directories", err)
	}
}
