package npwg

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
)

// nadWith is the NetworkAttachmentDefinition ai/rail0.
func nadWith(config string) *cniv1.NetworkAttachmentDefinition {
	return &cniv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "rail0", Annotations: map[string]string{cniv1.AnnotationResourceName: "example.com/vf"}},
		Spec:       cniv1.NetworkAttachmentDefinitionSpec{Config: config},
	}
}

// rail0 selects it.
var rail0 = Selected{Namespace: "ai", Name: "rail0", Interface: "net1", At: networksAt + "[0]"}

func file(path, text string) File { return File{Path: path, Content: []byte(text)} }

func TestN2WhichConfiguration(t *testing.T) {
	t.Parallel()
	files := []File{
		file("/etc/cni/net.d/10-a.conf", `{"name":"rail0","type":"from-conf"}`),
		file("/etc/cni/net.d/05-broken.conflist", `{`),
		file("/etc/cni/net.d/30-b.conflist", `{"name":"rail0","plugins":[{"type":"from-30"}]}`),
		file("/etc/cni/net.d/20-b.conflist", `{"name":"rail0","plugins":[{"type":"from-20"}]}`),
		file("/etc/cni/net.d/01-x.conflist.bak", `{"name":"rail0","plugins":[{"type":"from-bak"}]}`),
		file("/etc/cni/net.d/00-other.conflist", `{"name":"other","plugins":[{"type":"other"}]}`),
	}
	tests := []struct {
		name, config string
		files        []File
		want         string // type of its plugin
		err          []string
	}{
		{name: "spec.config", config: `{"type":"from-spec"}`, files: files, want: "from-spec"},
		{name: "conflist", files: files, want: "from-20"},
		{name: "blank spec.config", config: "\n ", files: files, want: "from-20"},
		{name: "conf", files: files[:2], want: "from-conf"},
		{name: "neither", files: files[1:2], err: []string{networksAt + "[0]", "NetworkAttachmentDefinition ai/rail0 has no spec.config", `"name": "rail0"`, "05-broken.conflist is no JSON"}},
		{name: "no files", err: []string{"has no spec.config"}},
		{name: "bad spec.config", config: `{`, files: files, err: []string{"spec.config of NetworkAttachmentDefinition ai/rail0: want a JSON object"}},
		{name: "a list", config: `[]`, err: []string{`want a JSON object, such as {"type": "macvlan"} or {"plugins": […]}: is a list`}},
		{name: "ipam as text", config: `{"plugins":[{"type":"macvlan","ipam":"spiderpool"}]}`, err: []string{`plugins[0]: want a CNI plugin, such as {"type": "macvlan"}: key "ipam" is a string`}},
		{name: "null", config: `null`, err: []string{"want a JSON object"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ChainOf(rail0, nadWith(tt.config), tt.files)
			checkError(t, err, tt.err...)
			if tt.err == nil && (got.Plugins[0].Type != tt.want || got.Resource != "example.com/vf") {
				t.Errorf("chain %+v, want plugin %s", got, tt.want)
			}
		})
	}
}

func TestN2ClusterNetwork(t *testing.T) {
	t.Parallel()
	own := Selected{Interface: "eth0", Default: true}
	c, err := ChainOf(own, nil, []File{file("/etc/cni/net.d/10-calico.conflist", `{"name":"k8s-pod-network","cniVersion":"1.0.0","plugins":[{"type":"calico"}]}`)})
	checkError(t, err)
	if c.Name != "k8s-pod-network" || c.Plugins[0].Native || c.Resource != "" {
		t.Errorf("chain %+v", c)
	}
	_, err = ChainOf(own, nil, nil)
	checkError(t, err, "the cluster's default network: 0 CNI configurations")
	_, err = ChainOf(own, nil, []File{file("/x.conf", `{"type":"bridge"}`)})
	checkError(t, err, "file /x.conf", "no name")
	_, err = ChainOf(rail0, nil, nil)
	checkError(t, err, networksAt+"[0]: NetworkAttachmentDefinition ai/rail0 is not there")
}

func TestN3N5Chain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, config string
		want         Chain // without Resource and From
		err          []string
	}{
		{
			name: "N3 name of the NetworkAttachmentDefinition", config: `{"type":"macvlan","ipam":{"type":"spiderpool"}}`,
			want: Chain{Name: "rail0", Plugins: []Plugin{{Type: "macvlan", IPAM: "spiderpool", Native: true, Config: json.RawMessage(`{"type":"macvlan","ipam":{"type":"spiderpool"}}`)}}},
		},
		{
			name:   "N5 list",
			config: `{"cniVersion":"1.0.0","name":"net","disableCheck":true,"disableGC":"true","plugins":[{"type":"macvlan","big":12345678901234567},{ "type": "sbr", "capabilities": {"mac": true}}]}`,
			want: Chain{Name: "net", CNIVersion: "1.0.0", DisableCheck: true, DisableGC: true, Plugins: []Plugin{
				{Type: "macvlan", Native: true, Config: json.RawMessage(`{"type":"macvlan","big":12345678901234567}`)},
				{Type: "sbr", Capabilities: map[string]bool{"mac": true}, Config: json.RawMessage(`{"type":"sbr","capabilities":{"mac":true}}`)},
			}},
		},
		{
			name: "N5 the newest version", config: `{"cniVersion":"0.3.1","cniVersions":["1.0.0","0.4.0"],"plugins":[{"type":"x"}]}`,
			want: Chain{Name: "rail0", CNIVersion: "1.0.0", Plugins: []Plugin{{Type: "x", Config: json.RawMessage(`{"type":"x"}`)}}},
		},
		{name: "no plugins", config: `{"plugins":[]}`, err: []string{"plugins: want a list of one or more"}},
		{name: "plugins are no list", config: `{"plugins":{}}`, err: []string{"plugins: want a list of one or more"}},
		{name: "plugin without a type", config: `{"plugins":[{"type":"x"},{}]}`, err: []string{"spec.config", "missing 'type'"}},
		{name: "no type", config: `{}`, err: []string{"plugins[0]", "missing 'type'"}},
		{name: "path as type", config: `{"type":"../x"}`, err: []string{`plugins[0]: type: "../x"`, "the file's name alone"}},
		{name: "ourselves", config: `{"type":"railhead-cni"}`, err: []string{`type: "railhead-cni"`, "again and again"}},
		{name: "bad name", config: `{"name":"a b","type":"x"}`, err: []string{`name: "a b"`}},
		{name: "name is a number", config: `{"name":5,"type":"x"}`, err: []string{`key "name" is a number`}},
		{name: "disableCheck is a number", config: `{"disableCheck":5,"plugins":[{"type":"x"}]}`, err: []string{"disableCheck"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ChainOf(rail0, nadWith(tt.config), nil)
			checkError(t, err, tt.err...)
			if tt.err != nil {
				return
			}
			tt.want.Resource, tt.want.From = "example.com/vf", "spec.config of NetworkAttachmentDefinition ai/rail0"
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// chainWith is the chain of a configuration that is good.
func chainWith(t *testing.T, config string) Chain {
	t.Helper()
	c, err := ChainOf(rail0, nadWith(config), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// selectOne is the network that a list of one element selects.
func selectOne(t *testing.T, element string) Selected {
	t.Helper()
	list, err := Networks(podWith("["+element+"]", ""), Config{})
	if err != nil {
		t.Fatal(err)
	}
	return list[1]
}

// TestB3Capabilities: what cannot be done is found before anything is attached.
func TestB3Capabilities(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, element, config string
		err                   []string
	}{
		{name: "nothing asked", element: `{"name":"rail0"}`, config: `{"type":"x"}`},
		{name: "ips of pools", element: `{"name":"rail0","ips":["10.1.0.5"]}`, config: `{"type":"macvlan","ipam":{"type":"spiderpool"}}`},
		{name: "ips, another's main plugin", element: `{"name":"rail0","ips":["10.1.0.5"]}`, config: `{"type":"bridge","ipam":{"type":"spiderpool"}}`, err: []string{"ips"}},
		{name: "ips, another's IPAM", element: `{"name":"rail0","ips":["10.1.0.5"]}`, config: `{"type":"macvlan","ipam":{"type":"host-local"}}`, err: []string{
			networksAt + `[0].ips: ["10.1.0.5"]`, "no plugin of network ai/rail0 (macvlan in spec.config of NetworkAttachmentDefinition ai/rail0)", `"ips" in the capabilities`,
		}},
		{name: "ips declared", element: `{"name":"rail0","ips":["10.1.0.5"]}`, config: `{"type":"macvlan","ipam":{"type":"static"},"capabilities":{"ips":true}}`},
		{name: "ips declared false", element: `{"name":"rail0","ips":["10.1.0.5"]}`, config: `{"type":"macvlan","ipam":{"type":"spiderpool"},"capabilities":{"ips":false}}`, err: []string{"ips"}},
		{name: "mac declared false", element: `{"name":"rail0","mac":"02:42:ac:11:00:02"}`, config: `{"type":"macvlan","capabilities":{"mac":false}}`, err: []string{"mac"}},
		{name: "mac", element: `{"name":"rail0","mac":"02:42:ac:11:00:02"}`, config: `{"type":"macvlan"}`},
		{name: "mac of ipvlan", element: `{"name":"rail0","mac":"02:42:ac:11:00:02"}`, config: `{"type":"ipvlan"}`, err: []string{networksAt + "[0].mac"}},
		{name: "mac by the last plugin", element: `{"name":"rail0","mac":"02:42:ac:11:00:02"}`, config: `{"plugins":[{"type":"bridge"},{"type":"tuning"}]}`},
		{name: "guid", element: `{"name":"rail0","infiniband-guid":"0c:42:a1:03:00:65:12:34"}`, config: `{"type":"ib-sriov"}`},
		{name: "guid of sriov", element: `{"name":"rail0","infiniband-guid":"0c:42:a1:03:00:65:12:34"}`, config: `{"type":"sriov"}`, err: []string{networksAt + "[0].infiniband-guid", "infinibandGUID"}},
		{name: "two that nobody can", element: `{"name":"rail0","portMappings":[{"hostPort":1,"containerPort":1}],"bandwidth":{}}`, config: `{"type":"macvlan"}`, err: []string{"[0].portMappings", "[0].bandwidth"}},
		{name: "declared", element: `{"name":"rail0","portMappings":[{"hostPort":1,"containerPort":1}],"bandwidth":{}}`, config: `{"plugins":[{"type":"macvlan"},{"type":"portmap","capabilities":{"portMappings":true}},{"type":"bandwidth","capabilities":{"bandwidth":true}}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			checkError(t, Check(selectOne(t, tt.element), chainWith(t, tt.config)), tt.err...)
		})
	}
}

// TestB6KubeletRuntimeConfig: only the default network has the kubelet's.
func TestB6KubeletRuntimeConfig(t *testing.T) {
	t.Parallel()
	kubelet := map[string]json.RawMessage{"portMappings": json.RawMessage(`[1]`), "dns": json.RawMessage(`{}`)}
	asked := map[string]json.RawMessage{"portMappings": json.RawMessage(`[2]`)}
	for _, tt := range []struct {
		name string
		s    Selected
		want map[string]json.RawMessage
	}{
		{"default network", Selected{Default: true}, kubelet},
		{"default network that asks itself", Selected{Default: true, Requests: asked}, map[string]json.RawMessage{"portMappings": asked["portMappings"], "dns": kubelet["dns"]}},
		{"rail", Selected{Requests: asked}, asked},
		{"rail that asks for nothing", Selected{}, map[string]json.RawMessage{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, requested(tt.s, kubelet)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if string(kubelet["portMappings"]) != "[1]" {
		t.Error("the kubelet's were changed")
	}
}
