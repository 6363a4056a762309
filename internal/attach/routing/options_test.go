package routing

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/nad"
)

func compareAddrs() cmp.Option {
	return cmp.Options{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	}
}

// defaults are Options where nobody says anything and the cluster is known.
func defaults(change func(*Options)) Options {
	o := Options{
		Mode: "auto", TunePodRoutes: true, HostRuleTable: 500, VethMTU: 1500,
		Detection: Detection{Gateway: true, Conflict: true, Retries: 3, Timeout: 100 * time.Millisecond, Interval: 10 * time.Millisecond},
	}
	if change != nil {
		change(&o)
	}
	return o
}

func TestMerge(t *testing.T) {
	t.Parallel()
	synced := v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseSynced}
	cluster := func(text string) v2beta1.CoordinatorSpec {
		var spec v2beta1.CoordinatorSpec
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		return spec
	}
	tests := []struct {
		name string
		from Sources
		want Options
	}{
		{"nothing", Sources{}, defaults(func(o *Options) { o.Unready = "it has no status yet" })},
		{
			"cluster",
			Sources{Status: synced, Cluster: cluster(`{mode: overlay, tunePodRoutes: false, hijackCIDR: [169.254.1.1/16, 192.0.2.1], podDefaultRouteNIC: net1, hostRuleTable: 7, podRPFilter: -1}`)},
			defaults(func(o *Options) {
				o.Mode, o.TunePodRoutes, o.HostRuleTable, o.PodRPFilter = "overlay", false, 7, -1
				o.HijackCIDRs, o.DefaultRouteNIC = prefixesOf("169.254.0.0/16", "192.0.2.1/32"), "net1"
			}),
		},
		{"network before cluster", Sources{
			Status:  synced,
			Cluster: cluster(`{mode: overlay, hijackCIDR: [169.254.0.0/16], policyRoutes: [{dst: 10.0.0.0/8, gw: 10.0.0.1}], podDefaultRouteNIC: eth0, podMACPrefix: "02:02", vethMTU: 9000, txQueueLen: 7}`),
			Element: json.RawMessage(`{"type": "coordinator", "mode": "disable", "hijackCIDR": [], "policyRoutes": [{"dst": "fd00::1", "gw": "fd00::2"}], "podDefaultRouteNic": "net1", "podMACPrefix": "0A:1b", "vethLinkAddress": "169.254.100.1", "vethMTU": 1400, "detectGateway": false, "detectIPConflict": false, "detectOptions": {"retries": 5, "timeout": "1s"}}`),
		}, defaults(func(o *Options) {
			o.Mode, o.DefaultRouteNIC, o.DefaultRouteFrom = "disabled", "net1", FromNetwork
			o.PolicyRoutes, o.PolicyRoutesFrom = []policy.Route{route("fd00::1/128", "fd00::2")}, FromNetwork
			o.MACPrefix, o.VethLinkAddress, o.VethMTU, o.TxQueueLen = []byte{0x0a, 0x1b}, netip.MustParseAddr("169.254.100.1"), 1400, 7
			o.Detection = Detection{Retries: 5, Timeout: time.Second, Interval: 10 * time.Millisecond}
		})},
		{
			"pod before network",
			Sources{Status: synced, Element: json.RawMessage(`{"podDefaultRouteNic": "net1"}`), DefaultRouteNIC: "net2"},
			defaults(func(o *Options) { o.DefaultRouteNIC, o.DefaultRouteFrom = "net2", FromPod }),
		},
		{
			"empty texts say nothing",
			Sources{Status: synced, Cluster: cluster(`{mode: overlay, podMACPrefix: "0a:1b"}`), Element: json.RawMessage(`{"mode": "", "podMACPrefix": "", "podDefaultRouteNic": "", "vethLinkAddress": ""}`)},
			defaults(func(o *Options) { o.Mode, o.MACPrefix = "overlay", []byte{0x0a, 0x1b} }),
		},
		{
			"CIDRs of the cluster",
			Sources{Status: v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseSynced, OverlayPodCIDR: []string{"10.233.64.1/18"}, ServiceCIDR: []string{"10.233.0.0/18", "fd00::/116"}}},
			defaults(func(o *Options) {
				o.PodCIDRs, o.ServiceCIDRs = prefixesOf("10.233.64.0/18"), prefixesOf("10.233.0.0/18", "fd00::/116")
			}),
		},
		{"CIDRs of the network", Sources{
			Status:  v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseNotReady, Reason: "no CIDR of pods found", ServiceCIDR: []string{"10.96.0.0/12"}},
			Element: json.RawMessage(`{"overlayPodCIDR": ["10.244.0.0/16"], "serviceCIDR": ["10.97.0.0/16"]}`),
		}, defaults(func(o *Options) {
			o.PodCIDRs, o.ServiceCIDRs = prefixesOf("10.244.0.0/16"), prefixesOf("10.97.0.0/16")
		})},
		{
			"detection in part",
			Sources{Status: synced, Cluster: cluster(`{detectOptions: {retries: 9, interval: 1ms}}`), Element: json.RawMessage(`{"detectOptions": {"interval": "2ms"}}`)},
			defaults(func(o *Options) { o.Detection.Retries, o.Detection.Interval = 9, 2*time.Millisecond }),
		},
		{
			"not ready",
			Sources{Status: v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseNotReady, Reason: "no CIDR of pods found"}, Element: json.RawMessage(`{"serviceCIDR": []}`)},
			defaults(func(o *Options) { o.Unready = "no CIDR of pods found" }),
		},
		{
			"as Spiderpool writes it",
			Sources{Status: synced, Element: json.RawMessage(`{"cniVersion": "0.3.1", "name": "gpu1", "type": "coordinator", "mode": "auto", "tunePodRoutes": true, "txQueueLen": 0, "podDefaultCniNic": "eth0", "multusNicPrefix": "net", "hostRPFilter": 0, "logOptions": {"logLevel": "debug"}}`)},
			defaults(nil),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Merge(tt.from)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, compareAddrs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeErrors(t *testing.T) {
	t.Parallel()
	element := func(text string) Sources { return Sources{Element: json.RawMessage(text)} }
	nine := 9
	for _, tt := range []struct {
		name string
		from Sources
		want string
	}{
		{
			"cluster",
			Sources{Cluster: v2beta1.CoordinatorSpec{PodRPFilter: &nine}},
			`SpiderCoordinator default: spec.podRPFilter: Invalid value: 9: want 0 (off), 1 (strict), 2 (loose), or a negative number to leave it as it is`,
		},
		{
			"network", element(`{"podMACPrefix": "0b:1b"}`),
			`the network's coordinator: podMACPrefix: Invalid value: "0b:1b": the first byte 0b is odd, which makes addresses multicast: want an even one, such as "0a:1b"`,
		},
		{
			"two of the network", element(`{"mode": "on", "hijackCIDR": ["10.0.0"]}`),
			`the network's coordinator: [mode: Unsupported value: "on": supported values: "auto", "underlay", "overlay", "disabled", hijackCIDR[0]: Invalid value: "10.0.0": want a CIDR or an address, such as "169.254.0.0/16"]`,
		},
		{
			"the NAD's spelling", element(`{"podDefaultRouteNic": "sixteen-bytes-ab"}`),
			`the network's coordinator: podDefaultRouteNIC: Invalid value: "sixteen-bytes-ab": want the name of a netdev: 1 to 15 bytes, without "/", ":" and spaces, and neither "." nor ".."`,
		},
		{
			"unknown", element(`{"type": "coordinator", "hijackCidrs": []}`),
			`the network's coordinator: unknown field "hijackCidrs": did you mean hijackCIDR? There are args, capabilities, cniVersion, detectGateway, detectIPConflict, detectOptions, dns, hijackCIDR, hostRPFilter, hostRuleTable, ipam, logOptions, mode, multusNicPrefix, name, overlayPodCIDR, podCIDRType, podDefaultCniNic, podDefaultRouteNic, podMACPrefix, podRPFilter, policyRoutes, prevResult, runtimeConfig, serviceCIDR, tunePodRoutes, txQueueLen, type, vethLinkAddress, vethMTU`,
		},
		{
			"of a wrong type", element(`{"tunePodRoutes": "true"}`),
			`the network's coordinator: tunePodRoutes is a string: want a bool`,
		},
		{
			"no object", element(`[]`),
			`the network's coordinator: want a JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`,
		},
		{
			"CIDRs of the cluster",
			Sources{Status: v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseSynced, ServiceCIDR: []string{"10.96.0.0/33"}}},
			`SpiderCoordinator default: status.serviceCIDR[0] is "10.96.0.0/33": want a CIDR or an address, such as "10.233.64.0/18"`,
		},
		{
			"CIDRs of the network", element(`{"overlayPodCIDR": ["::ffff:10.0.0.0/104"]}`),
			`the network's coordinator: overlayPodCIDR[0] is "::ffff:10.0.0.0/104": want an IPv4 CIDR as "10.233.64.0/18"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Merge(tt.from)
			if err == nil {
				t.Fatalf("no error, want %s", tt.want)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(Options{}, got, compareAddrs()); diff != "" {
				t.Errorf("a part comes with the error:\n%s", diff)
			}
		})
	}
}

// TestMergeReadsNADs: what a SpiderMultusConfig says of its coordinator comes
// through its NetworkAttachmentDefinition.
func TestMergeReadsNADs(t *testing.T) {
	t.Parallel()
	for _, coordinator := range []string{
		`{}`,
		`{mode: underlay, tunePodRoutes: false, hijackCIDR: [10.0.0.1], policyRoutes: [{dst: 10.1.0.0/16, gw: 10.0.0.1}], podDefaultRouteNIC: net1, podMACPrefix: "0a:1b", hostRuleTable: 501, podRPFilter: 2, txQueueLen: 1000, vethLinkAddress: 169.254.100.1, vethMTU: 9000, detectIPConflict: false, detectGateway: false, detectOptions: {retries: 1, timeout: 1s, interval: 2s}}`,
	} {
		obj := &v2beta1.SpiderMultusConfig{}
		text := "metadata: {name: gpu1-macvlan, namespace: spiderpool}\nspec: {cniType: macvlan, macvlan: {master: [enp11s0f0np0]}, coordinator: " + coordinator + "}"
		if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
			t.Fatal(err)
		}
		catalog := policy.NewCatalog()
		catalog.Put(obj)
		network, ok := catalog.Network("spiderpool", "gpu1-macvlan")
		if !ok {
			t.Fatal(catalog.Review(obj, nil).Errors)
		}
		made, err := nad.For(network)
		if err != nil {
			t.Fatal(err)
		}
		var config struct{ Plugins []json.RawMessage }
		if err := json.Unmarshal([]byte(made.Spec.Config), &config); err != nil {
			t.Fatal(err)
		}
		got, err := Merge(Sources{Element: config.Plugins[len(config.Plugins)-1]})
		if err != nil {
			t.Fatalf("%v of %s", err, made.Spec.Config)
		}
		want, err := Merge(Sources{Cluster: *obj.Spec.Coordinator})
		if err != nil {
			t.Fatal(err)
		}
		if obj.Spec.Coordinator.PodDefaultRouteNIC != nil {
			want.PolicyRoutesFrom, want.DefaultRouteFrom = FromNetwork, FromNetwork
		}
		if diff := cmp.Diff(want, got, compareAddrs()); diff != "" {
			t.Errorf("%s\n(-as the cluster's +as the network's):\n%s", coordinator, diff)
		}
	}
}

// FuzzMerge: no configuration makes it panic, and what it answers can be planned or is refused.
func FuzzMerge(f *testing.F) {
	for _, text := range []string{
		"", "{}", "null", `{"mode": null}`, `{"podMACPrefix": "0a1b"}`, `{"hijackCIDR": [""]}`, `{"hostRuleTable": 4294967295, "txQueueLen": 2147483647}`,
		`{"mode": "underlay", "vethLinkAddress": "::ffff:1.2.3.4", "policyRoutes": [{"dst": "0.0.0.0/0", "gw": "172.16.11.1"}], "detectOptions": {}}`,
	} {
		f.Add(text, "net1")
	}
	f.Fuzz(func(t *testing.T, text, nic string) {
		o, err := Merge(Sources{Element: json.RawMessage(text), DefaultRouteNIC: nic})
		if err != nil {
			return
		}
		for _, pod := range []Pod{overlay(calico(), rail(0, 24, &o)), underlay(&o)} {
			if r, err := Plan(pod); err == nil {
				check(t, pod, r)
			}
		}
	})
}
