package npwg

import (
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	cniv1 "railhead/api/cni/v1"
)

// podWith is a pod with the annotations for networks and for the default network; "" is none.
func podWith(networks, defaultNetwork string) Pod {
	p := Pod{Namespace: "ai", Name: "train-0", Annotations: map[string]string{}}
	if networks != "" {
		p.Annotations[cniv1.AnnotationNetworks] = networks
	}
	if defaultNetwork != "" {
		p.Annotations[cniv1.AnnotationDefaultNetwork] = defaultNetwork
	}
	return p
}

// brief is a network with its interface.
func brief(list []Selected) string {
	var items []string
	for _, s := range list {
		items = append(items, s.Namespace+"/"+s.Name+"@"+s.Interface)
	}
	return strings.Join(items, " ")
}

// checkError wants an error with all parts in it, or none without parts.
func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
}

const (
	networksAt = `metadata.annotations[k8s.v1.cni.cncf.io/networks]`
	defaultAt  = `metadata.annotations[v1.multus-cni.io/default-network]`
)

func TestB1DefaultNetworkComesFirst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, networks, defaultNetwork string
		config                         Config
		want                           string
		err                            []string
	}{
		{name: "no annotations", want: "/@eth0"},
		{name: "the cluster's own", networks: "rail0,rail1", want: "/@eth0 ai/rail0@net1 ai/rail1@net2"},
		{name: "short form", defaultNetwork: "macvlan-eth0", want: "kube-system/macvlan-eth0@eth0"},
		{name: "namespace", networks: "rail0", defaultNetwork: "spiderpool/eth0-net", want: "spiderpool/eth0-net@eth0 ai/rail0@net1"},
		{name: "JSON", defaultNetwork: `[{"name":"eth0-net","namespace":"spiderpool","mac":"02:42:ac:11:00:02"}]`, want: "spiderpool/eth0-net@eth0"},
		{name: "other namespace", defaultNetwork: "x", config: Config{DefaultNamespace: "networks"}, want: "networks/x@eth0"},
		{name: "other interface", networks: "rail0@eth0", config: Config{Interface: "ens3"}, want: "/@ens3 ai/rail0@eth0"},
		{name: "its interface by name", defaultNetwork: "x@eth0", want: "kube-system/x@eth0"},
		{name: "another interface", defaultNetwork: "x@net5", err: []string{defaultAt + "[0].interface", `"net5"`, `want "eth0", or none`}},
		{name: "two", defaultNetwork: "a,b", err: []string{defaultAt, `"a,b"`, "names 2 networks: want one"}},
		{name: "none in JSON", defaultNetwork: "[]", err: []string{"names 0 networks: want one"}},
		{name: "blank", defaultNetwork: " ", err: []string{"names 0 networks: want one"}},
		{name: "bad", defaultNetwork: "A", err: []string{"pod ai/train-0: " + defaultAt + "[0]", `name "A"`}},
		{name: "both bad", defaultNetwork: "A", networks: "B", err: []string{defaultAt, networksAt}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Networks(podWith(tt.networks, tt.defaultNetwork), tt.config)
			checkError(t, err, tt.err...)
			if brief(got) != tt.want {
				t.Errorf("networks %q, want %q", brief(got), tt.want)
			}
			for i, s := range got {
				if s.Default != (i == 0) {
					t.Errorf("network %d: default is %v", i, s.Default)
				}
			}
		})
	}
}

// TestInterfaceNames also has networks that are there several times (section 4.2).
func TestInterfaceNames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, networks, want string
		err                  []string
	}{
		{name: "same network", networks: "r,r,other/r", want: "/@eth0 ai/r@net1 ai/r@net2 other/r@net3"},
		{name: "asked for", networks: "a@rail0,b,c@rail2", want: "/@eth0 ai/a@rail0 ai/b@net2 ai/c@rail2"},
		{name: "own place by name", networks: "a@net1,b", want: "/@eth0 ai/a@net1 ai/b@net2"},
		{name: "another's place by name", networks: "a@net2,b,c", want: "/@eth0 ai/a@net2 ai/b@net4 ai/c@net3"},
		{name: "and the next, too", networks: "a@net2,b,c@net4", want: "/@eth0 ai/a@net2 ai/b@net5 ai/c@net4"},
		{name: "name behind it", networks: "a,b@net1", want: "/@eth0 ai/a@net3 ai/b@net1"},
		{name: "twice", networks: "a@x,b@x", err: []string{networksAt + "[1]", `Duplicate value: "x"`}},
		{name: "twice in JSON", networks: `[{"name":"a","interface":"x"},{"name":"b","interface":"x"}]`, err: []string{networksAt + "[1]", `Duplicate value: "x"`}},
		{name: "the default network's", networks: "a@eth0", err: []string{networksAt + "[0].interface", `Duplicate value: "eth0"`, "the default network has it: want a name"}},
		{name: "the kernel's", networks: "a@lo,b@all", err: []string{"[0].interface", `"lo"`, "[1].interface", "such as net1"}},
		{name: "too long", networks: "a@abcdefghijklmnop", err: []string{"16 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Networks(podWith(tt.networks, ""), Config{})
			checkError(t, err, tt.err...)
			if brief(got) != tt.want {
				t.Errorf("networks %q, want %q", brief(got), tt.want)
			}
		})
	}
}

func TestB7NamespaceIsolation(t *testing.T) {
	t.Parallel()
	isolated := Config{NamespaceIsolation: true, GlobalNamespaces: []string{"rails"}}
	tests := []struct {
		name, networks, defaultNetwork string
		config                         Config
		err                            []string
	}{
		{name: "off", networks: "other/a"},
		{name: "own", networks: "a,ai/b", config: isolated},
		{name: "default", networks: "default/a", config: isolated},
		{name: "global", networks: "rails/a", config: isolated},
		{name: "another's", networks: "a,other/a", config: isolated, err: []string{networksAt + "[1].namespace", `"other"`, `["ai" "default" "rails"]`}},
		{name: "the administrator's", networks: "kube-system/a", config: isolated, err: []string{`"kube-system"`}},
		{name: "default network of the administrator", defaultNetwork: "a", config: isolated},
		{name: "default network of another", defaultNetwork: "other/a", config: isolated, err: []string{defaultAt + "[0].namespace", `"other"`, "kube-system"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Networks(podWith(tt.networks, tt.defaultNetwork), tt.config)
			checkError(t, err, tt.err...)
		})
	}
}

// TestSelectionKeys has all keys of section 4.1.2.
func TestSelectionKeys(t *testing.T) {
	t.Parallel()
	got, err := Networks(podWith(`[{
		"name": "rail0", "namespace": "rails", "interface": "r0", "ips": ["10.1.0.5/24", "fd00::5"],
		"mac": "02:42:ac:11:00:02", "infiniband-guid": "0c:42:a1:03:00:65:12:34",
		"cni-args": {"a": {"b": 12345678901234567}, "c": null}, "default-route": ["10.1.0.1"], "deviceID": "0000:3b:00.2",
		"portMappings": [{"hostPort": 80, "containerPort": 8080}, {"hostPort": 53, "containerPort": 53, "protocol": "UDP", "hostIP": "192.0.2.1"}],
		"bandwidth": {"ingressRate": 2048, "ingressBurst": 1600}, "example.com/x": [1]
	}, {"name": "rail1", "ipam-claim-reference": "vm-rail1"}]`, ""), Config{})
	if err != nil {
		t.Fatal(err)
	}
	mac, _ := net.ParseMAC("02:42:ac:11:00:02")
	guid, _ := net.ParseMAC("0c:42:a1:03:00:65:12:34")
	want := []Selected{
		{Interface: "eth0", Default: true},
		{
			Namespace: "rails", Name: "rail0", Interface: "r0", At: networksAt + "[0]",
			IPs: []netip.Prefix{netip.MustParsePrefix("10.1.0.5/24"), netip.MustParsePrefix("fd00::5/128")},
			MAC: mac, GUID: guid, HasDefaultRoute: true, DefaultRoute: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, DeviceID: "0000:3b:00.2",
			CNIArgs: map[string]json.RawMessage{"a": json.RawMessage(`{"b": 12345678901234567}`), "c": json.RawMessage("null")},
			Requests: map[string]json.RawMessage{
				"ips": json.RawMessage(`["10.1.0.5/24","fd00::5"]`), "mac": json.RawMessage(`"02:42:ac:11:00:02"`),
				"infinibandGUID": json.RawMessage(`"0c:42:a1:03:00:65:12:34"`),
				"portMappings":   json.RawMessage(`[{"hostPort":80,"containerPort":8080,"protocol":"tcp"},{"hostPort":53,"containerPort":53,"protocol":"UDP","hostIP":"192.0.2.1"}]`),
				"bandwidth":      json.RawMessage(`{"ingressRate":2048,"ingressBurst":1600,"egressRate":0,"egressBurst":0}`),
			},
		},
		{Namespace: "ai", Name: "rail1", Interface: "net2", At: networksAt + "[1]", IPAMClaim: "vm-rail1"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSelectionKeysRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, networks, defaultNetwork string
		err                            []string
	}{
		{"ips and a claim", `[{"name":"a"},{"name":"b","ips":["10.1.0.5"],"ipam-claim-reference":"c"}]`, "", []string{networksAt + "[1].ipam-claim-reference", `"c" with ips ["10.1.0.5"]`, "want one of the two"}},
		{"two default routes", `[{"name":"a","default-route":[]},{"name":"b","default-route":["10.1.0.1"]}]`, "", []string{networksAt + "[1].default-route", "only one may"}},
		{"default route of the default network, too", `[{"name":"b","default-route":[]}]`, `[{"name":"a","default-route":["10.1.0.1"]}]`, []string{networksAt + "[0].default-route", defaultAt + "[0] has one, and only one network may"}},
		{"port", `[{"name":"a","portMappings":[{"hostPort":80,"containerPort":70000}]}]`, "", []string{networksAt + "[0].portMappings[0].containerPort", "70000", "1 to 65535"}},
		{"port that is text", `[{"name":"a","portMappings":[{"hostPort":"80"}]}]`, "", []string{networksAt + "[0].portMappings.hostPort", "want a whole number"}},
		{"no port", `[{"name":"a","portMappings":[null]}]`, "", []string{"hostPort", "containerPort"}},
		{"protocol", `[{"name":"a","portMappings":[{"hostPort":80,"containerPort":80,"protocol":"icmp"}]}]`, "", []string{"protocol", `"icmp"`, `"tcp"`}},
		{"address of the node", `[{"name":"a","portMappings":[{"hostPort":80,"containerPort":80,"hostIP":"x"}]}]`, "", []string{"hostIP", `"x"`}},
		{"burst without its rate", `[{"name":"a","bandwidth":{"egressBurst":5}}]`, "", []string{networksAt + "[0].bandwidth.egressRate", "Required", "egressBurst is 5"}},
		{"negative rate", `[{"name":"a","bandwidth":{"ingressRate":-1}}]`, "", []string{"bandwidth.ingressRate", "-1"}},
		{"fraction", `[{"name":"a","bandwidth":{"ingressRate":1.5}}]`, "", []string{"bandwidth.ingressRate", "want a whole number"}},
		{"device", `[{"name":"a","deviceID":5}]`, "", []string{networksAt + "[0].deviceID", "want a text"}},
		{"arguments", `[{"name":"a","cni-args":[]}]`, "", []string{networksAt + "[0]", "cni-args"}},
		{"MAC", `[{"name":"a","mac":"02"}]`, "", []string{networksAt + "[0].mac", `"02"`, "want 6 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Networks(podWith(tt.networks, tt.defaultNetwork), Config{})
			checkError(t, err, append(tt.err, "pod ai/train-0: ")...)
			if got != nil {
				t.Errorf("networks %v with an error", got)
			}
		})
	}
}
