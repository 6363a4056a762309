package npwg

import (
	"bytes"
	"encoding/json"
	"testing"

	"railhead/internal/golden"
)

// TestN5PluginConfig has the configurations of all plugins of a chain.
func TestN5PluginConfig(t *testing.T) {
	t.Parallel()
	const declared = `"capabilities":{"mac":true,"portMappings":true,"deviceID":true,"CNIDeviceInfoFile":true}`
	tests := []struct {
		name, element, config string
		call                  Call
	}{
		{
			name: "injected", element: `{"name":"rail0"}`,
			config: `{"cniVersion":"1.0.0","plugins":[{"type":"vendor","name":"x","cniVersion":"0.3.1","big":12345678901234567},{"type":"sbr"}]}`,
			call:   Call{PrevResult: json.RawMessage(`{"cniVersion":"1.0.0"}`)},
		},
		{name: "no-version", element: `{"name":"rail0"}`, config: `{"type":"vendor"}`},
		{
			name: "cni-args", element: `{"name":"rail0","cni-args":{"a":"pod","n":12345678901234567}}`,
			config: `{"plugins":[{"type":"vendor","args":{"other":1,"cni":{"a":"network","b":"network"}}},{"type":"sbr"},{"type":"null","args":{"cni":null}}]}`,
		},
		{
			name: "device", element: `{"name":"rail0","mac":"02:42:ac:11:00:02"}`,
			config: `{"plugins":[{"type":"vendor","deviceID":"x",` + declared + `},{"type":"sbr"}]}`,
			call:   Call{DeviceID: "0000:3b:00.2", DeviceInfoFile: "/run/devinfo/cni/x", Kubelet: map[string]json.RawMessage{"portMappings": json.RawMessage(`[1]`)}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := chainWith(t, tt.config)
			var all bytes.Buffer
			for i := range c.Plugins {
				config, err := c.PluginConfig(i, selectOne(t, tt.element), tt.call)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Indent(&all, config, "", "  "); err != nil {
					t.Fatal(err)
				}
				all.WriteByte('\n')
			}
			golden.Equal(t, "testdata/plugin-"+tt.name+".golden", all.Bytes())
		})
	}
}

// TestB6PluginConfig: the default network's plugins that can, get the kubelet's.
func TestB6PluginConfig(t *testing.T) {
	t.Parallel()
	c := chainWith(t, `{"plugins":[{"type":"calico"},{"type":"portmap","capabilities":{"portMappings":true}}]}`)
	call := Call{Kubelet: map[string]json.RawMessage{"portMappings": json.RawMessage(`[1]`)}}
	for i, want := range []string{
		`{"name":"rail0","type":"calico"}`,
		`{"capabilities":{"portMappings":true},"name":"rail0","runtimeConfig":{"portMappings":[1]},"type":"portmap"}`,
	} {
		got, err := c.PluginConfig(i, Selected{Default: true}, call)
		checkError(t, err)
		if string(got) != want {
			t.Errorf("plugin %d: %s, want %s", i, got, want)
		}
	}
}

func TestPluginConfigRefused(t *testing.T) {
	t.Parallel()
	s := selectOne(t, `{"name":"rail0","cni-args":{"a":1}}`)
	for config, want := range map[string]string{
		`{"type":"vendor","args":5}`:         "plugin vendor: args: 5: the pod's cni-args go into it, want a JSON object",
		`{"type":"vendor","args":{"cni":5}}`: "plugin vendor: args.cni: 5",
	} {
		_, err := chainWith(t, config).PluginConfig(0, s, Call{})
		checkError(t, err, "spec.config of NetworkAttachmentDefinition ai/rail0", want)
	}
}
