package annotation

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestReviewPod(t *testing.T) {
	t.Parallel()
	const p = "ipam.spidernet.io/"
	tests := []struct {
		name     string
		key      string
		text     string
		errs     []string
		warnings int
	}{
		{name: "of others", key: "example.com/x", text: "{"},
		{name: "networks", key: "k8s.v1.cni.cncf.io/networks", text: "a/b/c", errs: []string{"a[k8s.v1.cni.cncf.io/networks][0]"}},
		{name: "default network", key: "v1.multus-cni.io/default-network", text: "kube-system/macvlan-ens6f0np0"},
		{name: "default networks", key: "v1.multus-cni.io/default-network", text: "a,b", errs: []string{"names 2 networks: want one, as"}},
		{name: "default network as JSON", key: "v1.multus-cni.io/default-network", text: `[{"name":"a","namespace":"b"}]`},
		{name: "pool", key: p + "ippool", text: `{"ipv4":["v4-*"],"ipv6":["v6"]}`},
		{name: "pool without any", key: p + "ippool", text: `{}`, errs: []string{"it names nothing"}},
		{name: "pool with a typo", key: p + "ippool", text: `{"ipv4s":["a"]}`, errs: []string{`unknown field "ipv4s": want {"ipv4"`}},
		{name: "pool as a list", key: p + "ippool", text: `[]`, errs: []string{"or the annotation ipam.spidernet.io/ippools for a list"}},
		{name: "pools as an object", key: p + "ippools", text: `{"ipv4":["a"]}`, errs: []string{"or the annotation ipam.spidernet.io/ippool for an object"}},
		{name: "pool without JSON", key: p + "ippool", text: `v4`, errs: []string{`is no JSON: want {"ipv4": [names], "ipv6": [names]} (invalid character 'v'`}},
		{name: "inject JSON", key: "cni.spidernet.io/rdma-resource-inject", text: `["a"]`, errs: []string{"is JSON: want values separated by commas"}},
		{name: "pool of an interface", key: p + "ippool", text: `{"interface":"eth0","ipv4":["a"]}`, errs: []string{"interface: Forbidden"}},
		{name: "two values", key: p + "ippool", text: `{"ipv4":["a"]} {}`, errs: []string{"there is more after it"}},
		{name: "a bracket too many", key: p + "ippool", text: `{"ipv4":["a"]}]`, errs: []string{"there is more after it"}},
		{name: "a brace too many", key: p + "ippool", text: `{"ipv4":["a"]}} x`, errs: []string{"there is more after it"}},
		{name: "pools", key: p + "ippools", text: `[{"interface":"eth0","ipv4":["a"]},{"interface":"net1","ipv6":["b"],"cleangateway":true}]`},
		{name: "pools by index", key: p + "ippools", text: `[{"ipv4":["a"]},{"ipv4":["b"]}]`},
		{name: "no pools", key: p + "ippools", text: `[]`, errs: []string{"it is empty"}},
		{
			name: "pools with some names", key: p + "ippools", text: `[{"interface":"eth0","ipv4":["a"]},{"ipv4":["b"]}]`,
			errs: []string{"some elements name their interface and some do not"},
		},
		{
			name: "an interface twice", key: p + "ippools", text: `[{"interface":"eth0","ipv4":["a"]},{"interface":"eth0","ipv4":["[b"]}]`,
			errs: []string{"[1].interface: Duplicate", `[1].ipv4[0]: Invalid value: "[b"`},
		},
		{name: "interface without name", key: p + "ippools", text: `[{"interface":"","ipv4":["a"]}]`, errs: []string{"[0].interface: Required"}},
		{name: "routes", key: p + "routes", text: `[{"dst":"10.2.0.0/16","gw":"10.1.0.1"},{"dst":"fd00::/64","gw":"fd01::1"}]`},
		{
			name: "bad routes", key: p + "routes", text: `[{"dst":"10.2.0.0","gw":"x"},{"dst":"10.2.0.0/16","gw":"fd01::1"}]`,
			errs: []string{"[0].dst", "[0].gw", "[1].gw: Invalid value: \"fd01::1\": want an address of the family"},
		},
		{name: "routes in another form", key: p + "routes", text: `10.2.0.0/16`, errs: []string{`want [{"dst"`}},
		{name: "subnet", key: p + "subnet", text: `{"ipv4":["s"]}`},
		{name: "subnet in another form", key: p + "subnet", text: `s`, errs: []string{"a[ipam.spidernet.io/subnet]"}},
		{name: "number", key: p + "ippool-ip-number", text: "+2"},
		{name: "no number", key: p + "ippool-ip-number", text: "2+", errs: []string{`"2+"`}},
		{name: "reclaim", key: p + "ippool-reclaim", text: "no", errs: []string{`supported values: "false", "true"`}},
		{name: "route NIC", key: p + "default-route-nic", text: "net 1", errs: []string{`"net 1"`}},
		{name: "inject", key: "cni.spidernet.io/rdma-resource-inject", text: "a, b"},
		{name: "inject nothing", key: "cni.spidernet.io/network-resource-inject", text: " , ", errs: []string{"Required value"}},
		{name: "typo", key: p + "ippols", text: "x", warnings: 1},
		{name: "of a namespace", key: p + "default-ipv4-ippool", text: "x", warnings: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			errs, warnings := ReviewPod(field.NewPath("a"), map[string]string{tt.key: tt.text})
			checkErrors(t, errs, tt.errs)
			if len(warnings) != tt.warnings {
				t.Errorf("warnings %q, want %d", warnings, tt.warnings)
			}
		})
	}
}

// TestReviewPodMuch wants few and short errors and warnings of much that is wrong,
// and no more elements than a pod can have interfaces.
func TestReviewPodMuch(t *testing.T) {
	t.Parallel()
	list := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	const p = "ipam.spidernet.io/"
	for _, tt := range []struct{ name, key, text, last string }{
		{"networks", "k8s.v1.cni.cncf.io/networks", list("x", 153), "Too many: 153: networks: want at most 152"},
		{"networks as JSON", "k8s.v1.cni.cncf.io/networks", "[" + list("{}", 153) + "]", "Too many: 153: networks: want at most 152"},
		{"bad networks", "k8s.v1.cni.cncf.io/networks", list("X", 152), "Too many: 152: errors: 142 more than those before"},
		{"bad addresses", "k8s.v1.cni.cncf.io/networks", `[{"name":"x","ips":[` + list(`"x"`, 50000) + `]}]`, "Too many: 50000: errors: 49990 more than those before"},
		{"no JSON", "k8s.v1.cni.cncf.io/networks", "[" + list("x", 1<<17), `"namespace/name,…" (invalid character 'x' looking for beginning of value)`},
		{"default networks", "v1.multus-cni.io/default-network", list("x", 153), "Too many: 153: networks: want at most 152"},
		{"pools", p + "ippools", "[" + list("{}", 154) + "]", "Too many: 154: interfaces: want at most 153"},
		{"bad pools", p + "ippools", "[" + list("{ }", 153) + strings.Repeat(" ", 1<<18) + "]", "Too many: 153: errors: 143 more than those before"},
		{"pools without JSON", p + "ippools", "[" + list("x", 1<<17), `want [{"interface": "eth0", "ipv4": [names], "ipv6": [names]}, …] (invalid character 'x' looking for beginning of value)`},
		{"bad routes", p + "routes", "[" + list("{}", 50000) + "]", "Too many: 100000: errors: 99990 more than those before"},
		{"subnets", p + "subnets", "[" + list("{}", 154) + "]", "Too many: 154: interfaces: want at most 153"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			errs, _ := ReviewPod(field.NewPath("a"), map[string]string{tt.key: tt.text})
			var all []string
			for _, err := range errs {
				all = append(all, err.Error())
			}
			if text := strings.Join(all, "; "); len(text) > 10<<10 || !strings.HasSuffix(text, tt.last) {
				t.Errorf("%d errors of %d bytes: %.300s\nwant at the end: %s", len(errs), len(text), text, tt.last)
			}
		})
	}
	many := map[string]string{}
	for n := range 1000 {
		many[fmt.Sprintf(p+"x%d", n)] = ""
	}
	if _, warnings := ReviewPod(nil, many); len(warnings) != 11 || warnings[10] != "and 990 more warnings" {
		t.Errorf("%d warnings, the last of them %q", len(warnings), warnings[len(warnings)-1])
	}
}

func TestReviewPodBothKeys(t *testing.T) {
	t.Parallel()
	_, warnings := ReviewPod(nil, map[string]string{
		"cni.spidernet.io/rdma-resource-inject":    "a",
		"cni.spidernet.io/network-resource-inject": "b",
	})
	if len(warnings) != 1 || !strings.Contains(warnings[0], "network-resource-inject has no effect") {
		t.Errorf("warnings %q, want one of network-resource-inject", warnings)
	}
}

func TestReviewMisspelt(t *testing.T) {
	t.Parallel()
	_, warnings := ReviewPod(nil, map[string]string{
		"ipam.spidernet.io/ippols": "x", "cni.spidernet.io/rdma-resources-inject": "x", "multus.spidernet.io/subnets": "x", "example.com/ippols": "x",
		"k8s.v1.cni.cncf.io/netwroks": "x", "k8s.cni.cncf.io/networks": "x", "k8s.v1.cni.cncf.io/default-network": "x", "v1.multus-cni.io/default-networks": "x",
		"k8s.v1.cni.cncf.io/network-status": "x", "k8s.v1.cni.cncf.io/networks-status": "x", "k8s.v1.cni.cncf.io/policy-for": "x", "example.com/networks": "x",
		"k8s.ovn.org/pod-networks": "x", "k8s.ovn.org/networks": "x", "k8s.v1.cni.cncf.io": "x", "networks": "x",
		"ipam.spidernet.io/networks": "x", "ipam.spidernet.com/ippool": "x", "ipam.spidernet.io/dns": "x",
	})
	want := []string{
		"annotation cni.spidernet.io/rdma-resources-inject has no effect here: did you mean cni.spidernet.io/rdma-resource-inject?",
		"annotation ipam.spidernet.com/ippool has no effect here: did you mean ipam.spidernet.io/ippool?",
		"annotation ipam.spidernet.io/dns has no effect here: there are cni.spidernet.io/network-resource-inject, cni.spidernet.io/rdma-resource-inject, ipam.spidernet.io/default-route-nic, ipam.spidernet.io/ippool, ipam.spidernet.io/ippool-ip-number, ipam.spidernet.io/ippool-reclaim, ipam.spidernet.io/ippools, ipam.spidernet.io/routes, ipam.spidernet.io/subnet, ipam.spidernet.io/subnets, k8s.v1.cni.cncf.io/networks, v1.multus-cni.io/default-network",
		"annotation ipam.spidernet.io/ippols has no effect here: did you mean ipam.spidernet.io/ippools?",
		"annotation ipam.spidernet.io/networks has no effect here: did you mean k8s.v1.cni.cncf.io/networks?",
		"annotation k8s.cni.cncf.io/networks has no effect here: did you mean k8s.v1.cni.cncf.io/networks?",
		"annotation k8s.v1.cni.cncf.io/default-network has no effect here: did you mean v1.multus-cni.io/default-network?",
		"annotation k8s.v1.cni.cncf.io/netwroks has no effect here: did you mean k8s.v1.cni.cncf.io/networks?",
		"annotation multus.spidernet.io/subnets has no effect here: did you mean ipam.spidernet.io/subnets?",
		"annotation v1.multus-cni.io/default-networks has no effect here: did you mean v1.multus-cni.io/default-network?",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("of a pod (-want +got):\n%s", diff)
	}
	_, warnings = ReviewNamespace(nil, map[string]string{"ipam.spidernet.io/default-ipv4-pool": "x"})
	want = []string{"annotation ipam.spidernet.io/default-ipv4-pool has no effect here: did you mean ipam.spidernet.io/default-ipv4-ippool?"}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("of a namespace (-want +got):\n%s", diff)
	}
}

func TestReviewNamespace(t *testing.T) {
	t.Parallel()
	errs, warnings := ReviewNamespace(field.NewPath("a"), map[string]string{
		"ipam.spidernet.io/default-ipv4-ippool": `["v4-*", "b/c"]`,
		"ipam.spidernet.io/default-ipv6-ippool": `v6`,
		"ipam.spidernet.io/ippool":              `{"ipv4":["a"]}`,
	})
	checkErrors(t, errs, []string{`a[ipam.spidernet.io/default-ipv4-ippool][1]: Invalid value: "b/c"`, `want ["name", …]`})
	if len(warnings) != 1 {
		t.Errorf("warnings %q, want one of a pod's annotation", warnings)
	}
}

// FuzzReviewPod wants errors of a value to be about its annotation, and none of
// a value that names a pool as JSON has it.
func FuzzReviewPod(f *testing.F) {
	keys := []string{
		"ipam.spidernet.io/ippools", "ipam.spidernet.io/ippool", "ipam.spidernet.io/subnets", "ipam.spidernet.io/subnet",
		"ipam.spidernet.io/routes", "ipam.spidernet.io/ippool-ip-number", "ipam.spidernet.io/default-route-nic",
	}
	f.Add(uint8(0), `[{"interface":"eth0","ipv4":["a"]}]`)
	f.Add(uint8(1), `{"ipv4":["a"]}`)
	f.Add(uint8(4), `[{"dst":"10.2.0.0/16","gw":"10.1.0.1"}]`)
	f.Add(uint8(5), "+1")
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		key := keys[int(which)%len(keys)]
		errs, _ := ReviewPod(field.NewPath("a"), map[string]string{key: text})
		for _, err := range errs {
			if !strings.HasPrefix(err.Field, "a["+key+"]") {
				t.Errorf("%q: error %v is of %s", text, err, err.Field)
			}
		}
		text = strings.ToValidUTF8(text, "?") // as JSON is
		names, _ := json.Marshal(map[string][]string{"ipv4": {text}})
		errs, _ = ReviewPod(nil, map[string]string{"ipam.spidernet.io/ippool": string(names)})
		if _, badPattern := path.Match(text, ""); len(errs) > 0 != (badPattern != nil || text == "" || strings.ContainsAny(text, "/ ")) {
			t.Errorf("of a pool called %q: %v", text, errs)
		}
	})
}
