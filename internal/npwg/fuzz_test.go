package npwg

import (
	"encoding/json"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
)

// FuzzNetworks: whatever a pod and a NetworkAttachmentDefinition say, interfaces
// are unique and named, plugins get JSON with their network's name, and the
// status reads back with one default network.
func FuzzNetworks(f *testing.F) {
	f.Add("ai/rail0@net2, rail1,rail1", "eth0-net", `{"type":"macvlan","ipam":{"type":"spiderpool"}}`, `{"cniVersion":"1.0.0","interfaces":[{"name":"h"},{"name":"e","sandbox":"s"}],"ips":[{"interface":1,"address":"10.1.0.2/24"},{"interface":-9,"address":"10.1.0.3/24"}]}`)
	f.Add(`[{"name":"a","interface":"net2","ips":["fd00::1"],"cni-args":{"x":null}},{"name":"b","mac":"02:42:ac:11:00:02"}]`, `[{"name":"d","default-route":[]}]`, `{"cniVersion":"1.0.0","plugins":[{"type":"x","args":null,"capabilities":{"ips":true}},{"type":"sriov"}]}`, `{"cniVersion":"1.1.0","interfaces":[null],"ips":[null,{}],"routes":[null,{"dst":"0.0.0.0/0","gw":"1.2.3.4"}]}`)
	f.Add("a@net3,b,c@net1,d@net2", " ", `{"plugins":[null]}`, `{"cniVersion":"1.0.0"}`)
	f.Add(`[{"name":"a","portMappings":[{}],"bandwidth":{"ingressBurst":1}},null]`, "x@eth0", "null", `{}`)
	f.Fuzz(func(t *testing.T, networks, defaultNetwork, config, answer string) {
		list, err := Networks(podWith(networks, defaultNetwork), Config{})
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range list {
			if s.Interface == "" || len(s.Interface) > 15 || seen[s.Interface] {
				t.Fatalf("interface %q of %s", s.Interface, brief(list))
			}
			seen[s.Interface] = true
		}
		chains := chainsOf(t, list, config)
		if chains == nil {
			return
		}
		if devices, err := Devices(list, chains, map[string][]string{"example.com/vf": {"d1", "d0"}}); err == nil && len(devices) != len(list) {
			t.Fatalf("%d devices of %d networks", len(devices), len(list))
		}
		var r types100.Result
		if json.Unmarshal([]byte(answer), &r) != nil {
			return
		}
		var attached []Attached
		for i, s := range list {
			attached = append(attached, Attached{Selected: s, Network: chains[i].Name, Result: &r})
		}
		checkStatus(t, attached)
	})
}

// chainsOf are the chains of all networks by one configuration, nil if it is none.
func chainsOf(t *testing.T, list []Selected, config string) []Chain {
	t.Helper()
	var chains []Chain
	for _, s := range list {
		c, err := ChainOf(s, nadWith(config), nil)
		if err != nil {
			return nil
		}
		_ = Check(s, c)
		for i := range c.Plugins {
			given, err := c.PluginConfig(i, s, Call{DeviceID: "d"})
			if err != nil {
				continue // args that are no object
			}
			var head struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal(given, &head); err != nil || head.Name != c.Name {
				t.Fatalf("plugin %d of network %q is given %s: %v", i, c.Name, given, err)
			}
		}
		chains = append(chains, c)
	}
	return chains
}

func checkStatus(t *testing.T, attached []Attached) {
	t.Helper()
	text, err := Status(attached)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseStatus(text)
	if err != nil || len(read) < len(attached) {
		t.Fatalf("%d entries of %d networks: %v", len(read), len(attached), err)
	}
	checkOneDefault(t, read)
	var written []NetworkStatus
	for _, a := range attached {
		written = append(written, a.entries()...)
	}
	want, err := json.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}
