package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		change     func(*Config)
	}{
		{"empty", "", func(*Config) {}},
		{"comments", "# nothing\n", func(*Config) {}},
		{"one family", "enableIPv6: false", func(c *Config) { c.EnableIPv6 = false }},
		{"pools need subnets", "enableSpiderSubnet: false", func(c *Config) { c.EnableSpiderSubnet, c.EnableAutoPool = false, false }},
		{"injection", "podResourceInject:\n  enabled: true\n  namespacesExclude: []\n  namespacesInclude: [train]\n", func(c *Config) {
			c.PodResourceInject = PodResourceInject{Enabled: true, NamespacesExclude: []string{}, NamespacesInclude: []string{"train"}}
		}},
		{"all keys", `
ipamUnixSocketPath: /run/s.sock
enableIPv4: true
enableIPv6: true
enableStatefulSet: false
enableKubevirtStaticIP: false
enableCleanOutdatedEndpoint: true
enableSpiderSubnet: true
enableAutoPoolForApplication: true
enableIPConflictDetection: false
enableGatewayDetection: false
enableValidatingResourcesDeletedWebhook: true
clusterSubnetDefaultFlexibleIPNumber: 3
tuneSysctlConfig: false
podResourceInject: {enabled: false, namespacesExclude: [kube-system], namespacesInclude: []}
agent: {networkResourcePlugin: {enabled: true, resources: [{prefix: a}]}}
iaasNetworkProvider: {serverUrl: "http://example.com", httpRequestTimeout: 5s}
`, func(c *Config) {
			*c = Config{
				Socket: "/run/s.sock", EnableIPv4: true, EnableIPv6: true, CleanEndpoints: true, EnableSpiderSubnet: true, EnableAutoPool: true,
				RefuseDeleteInUse: true, ClusterSubnetDefaultFlexibleIPNumber: 3,
				PodResourceInject: PodResourceInject{NamespacesExclude: []string{"kube-system"}, NamespacesInclude: []string{}},
				Agent:             AgentConfig{NetworkResourcePlugin: map[string]any{"enabled": true, "resources": []any{map[string]any{"prefix": "a"}}}},
				IAASNetwork:       IAASNetwork{ServerURL: "http://example.com", HTTPRequestTimeout: "5s"},
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := DefaultConfig()
			tt.change(&want)
			got, err := ParseConfig([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ParseConfig (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"unknown keys", "enableIpv6: true\npodResourceInject:\n  namespaceInclude: [a]\n", `[enableIpv6: Forbidden: unknown key: did you mean "enableIPv6"?, podResourceInject.namespaceInclude: Forbidden: unknown key: did you mean "namespacesInclude"?]`},
		{"a key far from all", "podResourceInject: {colour: red}", `podResourceInject.colour: Forbidden: unknown key: want one of enabled, namespacesExclude, namespacesInclude`},
		{"wrong type", "enableIPv4: \"yes\"", `enableIPv4: Invalid value: "yes": want true or false`},
		{"wrong list", "podResourceInject: {namespacesInclude: a}", `podResourceInject.namespacesInclude: Invalid value: "a": want a list of texts, such as [a, b]`},
		{"all wrong types", "ipamUnixSocketPath: 5\nclusterSubnetDefaultFlexibleIPNumber: 1.5\npodResourceInject: {enabled: \"yes\", namespacesExclude: [a, 5]}\niaasNetworkProvider: soon\nenableIPv4: null\nenableIpv6: true", `[clusterSubnetDefaultFlexibleIPNumber: Invalid value: 1.5: want a whole number, enableIpv6: Forbidden: unknown key: did you mean "enableIPv6"?, iaasNetworkProvider: Invalid value: "soon": want keys and values, ipamUnixSocketPath: Invalid value: 5: want text, in quotes where it looks like something else, podResourceInject.enabled: Invalid value: "yes": want true or false, podResourceInject.namespacesExclude: Invalid value: ["a",5]: want a list of texts, such as [a, b]]`},
		{"key twice", "enableIPv4: true\nenableIPv4: false", "yaml: unmarshal errors:\n  line 2: key \"enableIPv4\" already set in map"},
		{"no map", "- a", `want keys and values, such as "enableIPv6: true"`},
		{"no family", "{enableIPv4: false, enableIPv6: false}", `enableIPv6: Invalid value: false: no family is left: want enableIPv4 or enableIPv6 true`},
		{"values", "clusterSubnetDefaultFlexibleIPNumber: -1\niaasNetworkProvider: {httpRequestTimeout: soon}\n", `[clusterSubnetDefaultFlexibleIPNumber: Invalid value: -1: want 0 or more addresses, iaasNetworkProvider.httpRequestTimeout: Invalid value: "soon": want a duration such as "50s"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseConfig([]byte(tt.text))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data map[string]string
		want string
	}{
		"good":    {data: map[string]string{ConfigMapKey: "enableIPv6: false", "other": "x"}},
		"no key":  {data: map[string]string{"conf.yaml": ""}, want: "data has no key conf.yml"},
		"no data": {want: "data has no key conf.yml"},
		"bad":     {data: map[string]string{ConfigMapKey: "- a"}, want: `data[conf.yml]: want keys and values, such as "enableIPv6: true"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := ConfigOf(tt.data)
			if err == nil && (tt.want != "" || config.EnableIPv6) {
				t.Errorf("%+v, want %q", config, tt.want)
			}
			if err != nil && err.Error() != tt.want {
				t.Errorf("error %q, want %q", err, tt.want)
			}
		})
	}
}

// FuzzParseConfig has configurations that are accepted keep a family, and
// own pools only with subnets.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("enableIPv6: false"))
	f.Add([]byte(`{"podResourceInject":{"enabled":true}}`))
	f.Add([]byte("agent: {networkResourcePlugin: 1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := ParseConfig(data)
		if err != nil {
			if diff := cmp.Diff(Config{}, config); diff != "" {
				t.Errorf("beside an error:\n%s", diff)
			}
			return
		}
		if !config.EnableIPv4 && !config.EnableIPv6 {
			t.Error("no family is left")
		}
		if config.EnableAutoPool && !config.EnableSpiderSubnet {
			t.Error("own pools without subnets")
		}
	})
}
