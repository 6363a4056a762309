package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"railhead/api/spiderpool/v2beta1"
)

func coordinatorFrom(tb testing.TB, text string) *v2beta1.SpiderCoordinator {
	tb.Helper()
	obj := &v2beta1.SpiderCoordinator{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return obj
}

// coordinatorCases are SpiderCoordinators and what admission says of each.
var coordinatorCases = []struct {
	name, yaml string
	want       []string
}{
	{"defaults", "spec: {}", nil},
	{"everything", `spec: {mode: overlay, podCIDRType: calico, tunePodRoutes: false, hijackCIDR: [169.254.0.0/16, 10.96.0.10, "fd00::1"], policyRoutes: [{dst: 10.0.0.1, gw: 10.0.0.2}, {dst: "fd00::/64", gw: "fd00::1"}], podDefaultRouteNIC: net1, podMACPrefix: "0a:1B", hostRuleTable: 256, podRPFilter: 2, txQueueLen: 1000, vethLinkAddress: 169.254.100.1, vethMTU: 9000, detectIPConflict: false, detectGateway: false, detectOptions: {retries: 5, timeout: 1s, interval: 1s}}`, nil},
	{"disable", "spec: {mode: disable}", nil},
	{"empty texts", `spec: {podMACPrefix: "", vethLinkAddress: "", podDefaultRouteNIC: ""}`, nil},
	{"another name", "metadata: {name: other}", []string{
		`warning: metadata.name: has no effect: only the SpiderCoordinator named "default" has`,
	}},
	{"modes", "spec: {mode: auto-detect, podCIDRType: flannel}", []string{
		`refused: spec.mode: Unsupported value: "auto-detect": supported values: "auto", "underlay", "overlay", "disabled"`,
		`refused: spec.podCIDRType: Unsupported value: "flannel": supported values: "auto", "cluster", "calico", "cilium", "none"`,
	}},
	{"mode empty", `spec: {mode: ""}`, []string{
		`refused: spec.mode: Unsupported value: "": supported values: "auto", "underlay", "overlay", "disabled"`,
	}},
	{"hijackCIDR", `spec: {hijackCIDR: ["", 10.0.0.0/33, 10.0.0, "fe80::1%eth0", 10.0.0.1]}`, []string{
		`refused: spec.hijackCIDR[0]: Invalid value: "": want a CIDR or an address, such as "169.254.0.0/16"`,
		`refused: spec.hijackCIDR[1]: Invalid value: "10.0.0.0/33": want a CIDR or an address, such as "169.254.0.0/16"`,
		`refused: spec.hijackCIDR[2]: Invalid value: "10.0.0": want a CIDR or an address, such as "169.254.0.0/16"`,
		`refused: spec.hijackCIDR[3]: Invalid value: "fe80::1%eth0": want a CIDR or an address, such as "169.254.0.0/16"`,
	}},
	{"policyRoutes", `spec: {policyRoutes: [{dst: x, gw: gateway}, {dst: 10.0.0.0/8, gw: "fd00::1"}, {dst: "fd00::/8", gw: 10.0.0.1}, {dst: 10.0.0.0/8, gw: 10.0.0.1/8}]}`, []string{
		`refused: spec.policyRoutes[0].dst: Invalid value: "x": want a CIDR or an address, such as "169.254.0.0/16"`,
		`refused: spec.policyRoutes[0].gw: Invalid value: "gateway": want the address of a gateway, such as "172.16.11.254"`,
		`refused: spec.policyRoutes[1].gw: Invalid value: "fd00::1": dst is 10.0.0.0/8: want a gateway of the same family`,
		`refused: spec.policyRoutes[2].gw: Invalid value: "10.0.0.1": dst is fd00::/8: want a gateway of the same family`,
		`refused: spec.policyRoutes[3].gw: Invalid value: "10.0.0.1/8": want the address of a gateway, such as "172.16.11.254"`,
	}},
	{"podDefaultRouteNIC", "spec: {podDefaultRouteNIC: sixteen-bytes-ab}", []string{
		`refused: spec.podDefaultRouteNIC: Invalid value: "sixteen-bytes-ab": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
	}},
	{"podMACPrefix odd", `spec: {podMACPrefix: "0b:1b"}`, []string{
		`refused: spec.podMACPrefix: Invalid value: "0b:1b": the first byte 0b is odd, which makes addresses multicast: want an even one, such as "0a:1b"`,
	}},
	{"podMACPrefix short", `spec: {podMACPrefix: "0a"}`, []string{
		`refused: spec.podMACPrefix: Invalid value: "0a": want the first two bytes of a MAC address, 4 hexadecimal digits as "0a:1b"`,
	}},
	{"podMACPrefix long", `spec: {podMACPrefix: "0a:1b:2c"}`, []string{
		`refused: spec.podMACPrefix: Invalid value: "0a:1b:2c": want the first two bytes of a MAC address, 4 hexadecimal digits as "0a:1b"`,
	}},
	{"podMACPrefix one digit", `spec: {podMACPrefix: "a:1b"}`, []string{
		`refused: spec.podMACPrefix: Invalid value: "a:1b": want the first two bytes of a MAC address, 4 hexadecimal digits as "0a:1b"`,
	}},
	{"podMACPrefix no hex", `spec: {podMACPrefix: "0a:1g"}`, []string{
		`refused: spec.podMACPrefix: Invalid value: "0a:1g": want the first two bytes of a MAC address, 4 hexadecimal digits as "0a:1b"`,
	}},
	{"hostRuleTable", "spec: {hostRuleTable: 254}", []string{
		"refused: spec.hostRuleTable: Invalid value: 254: want the number of a routing table: 1 to 4294967295, but not 253 to 255, which are default, main and local",
	}},
	{"hostRuleTable 0", "spec: {hostRuleTable: 0}", []string{
		"refused: spec.hostRuleTable: Invalid value: 0: want the number of a routing table: 1 to 4294967295, but not 253 to 255, which are default, main and local",
	}},
	{"podRPFilter", "spec: {podRPFilter: 3}", []string{
		"refused: spec.podRPFilter: Invalid value: 3: want 0 (off), 1 (strict), 2 (loose), or a negative number to leave it as it is",
	}},
	{"podRPFilter left", "spec: {podRPFilter: -7}", nil},
	{"hostRPFilter", "spec: {hostRPFilter: 0}", []string{
		"warning: spec.hostRPFilter: has no effect: rp_filter of the node is left as it is",
	}},
	{"txQueueLen", "spec: {txQueueLen: -1}", []string{
		"refused: spec.txQueueLen: Invalid value: -1: want 0 to leave it as it is, or a number of packets up to 2147483647",
	}},
	{"vethLinkAddress IPv6", `spec: {vethLinkAddress: "fe80::1"}`, []string{
		`refused: spec.vethLinkAddress: Invalid value: "fe80::1": want an IPv4 address without prefix, such as "169.254.100.1"`,
	}},
	{"vethLinkAddress CIDR", `spec: {vethLinkAddress: 169.254.1.1/16}`, []string{
		`refused: spec.vethLinkAddress: Invalid value: "169.254.1.1/16": want an IPv4 address without prefix, such as "169.254.100.1"`,
	}},
	{"vethMTU", "spec: {vethMTU: 0}", []string{
		"refused: spec.vethMTU: Invalid value: 0: want 68 to 65535",
	}},
	{"detectOptions", "spec: {detectOptions: {retries: 0, timeout: 0s, interval: 11s}}", []string{
		`refused: spec.detectOptions.timeout: Invalid value: "0s": want a duration above 0 and up to 10s, such as "100ms"`,
		`refused: spec.detectOptions.interval: Invalid value: "11s": want a duration above 0 and up to 10s, such as "100ms"`,
		"refused: spec.detectOptions.retries: Invalid value: 0: want 1 to 100",
	}},
	{"detectOptions no durations", "spec: {detectOptions: {retries: 101, timeout: \"100\", interval: -1ms}}", []string{
		`refused: spec.detectOptions.timeout: Invalid value: "100": want a duration above 0 and up to 10s, such as "100ms"`,
		`refused: spec.detectOptions.interval: Invalid value: "-1ms": want a duration above 0 and up to 10s, such as "100ms"`,
		"refused: spec.detectOptions.retries: Invalid value: 101: want 1 to 100",
	}},
	{"detectOptions in all", "spec: {detectOptions: {retries: 100, timeout: 1s}}", []string{
		`refused: spec.detectOptions: Invalid value: "1m41s": 100 retries of 1s and 10ms between them hold a pod up for 1m41s: want 1m0s at most`,
	}},
}

func TestCoordinatorRules(t *testing.T) {
	for _, tc := range coordinatorCases {
		t.Run(tc.name, func(t *testing.T) {
			got := admit(NewCatalog(), coordinatorFrom(t, tc.yaml), nil)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCoordinatorWithoutDefaults(t *testing.T) {
	got := texts(NewCatalog().Review(coordinatorFrom(t, "spec: {}"), nil))
	want := []string{"refused: spec.podCIDRType: Required value: want auto, cluster, calico, cilium or none"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCoordinatorDefaults(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"nothing said", "spec: {}", `
spec: {mode: auto, podCIDRType: auto, tunePodRoutes: true, hostRuleTable: 500, podRPFilter: 0, txQueueLen: 0, vethMTU: 1500,
  detectGateway: true, detectIPConflict: true, detectOptions: {retries: 3, timeout: 100ms, interval: 10ms}}`},
		{"all said", `
spec: {mode: disable, podCIDRType: none, tunePodRoutes: false, hostRuleTable: 1, podRPFilter: -1, txQueueLen: 7, vethMTU: 1400,
  hijackCIDR: [10.96.0.10, "fd00::1", 10.1.2.3/8, nonsense], policyRoutes: [{dst: 10.0.0.9, gw: 10.0.0.1}],
  detectGateway: false, detectIPConflict: false, detectOptions: {timeout: 1s}}`, `
spec: {mode: disabled, podCIDRType: none, tunePodRoutes: false, hostRuleTable: 1, podRPFilter: -1, txQueueLen: 7, vethMTU: 1400,
  hijackCIDR: [10.96.0.10/32, "fd00::1/128", 10.0.0.0/8, nonsense], policyRoutes: [{dst: 10.0.0.9/32, gw: 10.0.0.1}],
  detectGateway: false, detectIPConflict: false, detectOptions: {retries: 3, timeout: 1s, interval: 10ms}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, want := coordinatorFrom(t, tc.yaml), coordinatorFrom(t, tc.want)
			c := NewCatalog()
			for range 2 {
				c.Default(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestCoordinatorChange(t *testing.T) {
	broken := coordinatorFrom(t, "spec: {podRPFilter: 3}")
	labelled := broken.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	if got := texts(NewCatalog().Review(labelled, broken)); got != nil {
		t.Errorf("a label of a broken one: %q", got)
	}
	mode := broken.DeepCopy()
	fill(&mode.Spec.Mode, v2beta1.ModeOverlay)
	if got := texts(NewCatalog().Review(mode, broken)); len(got) == 0 {
		t.Error("a change of a broken one was accepted")
	}
}

func TestCatalogCoordinator(t *testing.T) {
	c := NewCatalog()
	if _, ok := c.Coordinator("default"); ok {
		t.Error("there is one before there is one")
	}
	obj := coordinatorFrom(t, "spec: {mode: overlay}")
	c.Put(obj)
	spec, ok := c.Coordinator("default")
	if !ok || *spec.Mode != v2beta1.ModeOverlay || *spec.HostRuleTable != 500 {
		t.Errorf("got %+v, %t", spec, ok)
	}
	if obj.Spec.HostRuleTable != nil {
		t.Error("Put changed the object")
	}
	c.Put(coordinatorFrom(t, "spec: {podRPFilter: 3}"))
	if _, ok := c.Coordinator("default"); ok {
		t.Error("a broken one is answered")
	}
	c.Put(obj)
	c.Remove(obj)
	if _, ok := c.Coordinator("default"); ok {
		t.Error("a removed one is answered")
	}
}
