package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/spiderpool/v2beta1"
)

func TestNetworkDefaults(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"nothing", "{}", "spec: {cniType: custom, enableCoordinator: false, disableIPAM: false}"},
		{
			"macvlan", "spec: {cniType: macvlan, macvlan: {master: [a], ippools: {}}}",
			"spec: {cniType: macvlan, enableCoordinator: true, disableIPAM: false, macvlan: {master: [a], mtu: 0, vlanID: 0, ippools: {matchMasterSubnet: false}}}",
		},
		{
			"ipvlan", "spec: {cniType: ipvlan, enableCoordinator: false, ipvlan: {master: [a], mtu: 5, vlanID: 6, enableRdma: true}}",
			"spec: {cniType: ipvlan, enableCoordinator: false, disableIPAM: false, ipvlan: {master: [a], mtu: 5, vlanID: 6, enableRdma: true}}",
		},
		{
			"vlan", "spec: {cniType: vlan, vlan: {master: [a]}}",
			"spec: {cniType: vlan, enableCoordinator: true, disableIPAM: false, vlan: {master: [a], mtu: 0, vlanID: 0, vlanMode: manual}}",
		},
		{
			"sriov", "spec: {cniType: sriov, sriov: {resourceName: a/b}}",
			"spec: {cniType: sriov, enableCoordinator: true, disableIPAM: false, sriov: {resourceName: a/b, vlanID: 0, mtu: 0, minTxRateMbps: 0, maxTxRateMbps: 0}}",
		},
		{
			"sriov, old spelling", "spec: {cniType: sriov, sriov: {resourceName: a/b, enableRdma: true}}",
			"spec: {cniType: sriov, enableCoordinator: true, disableIPAM: false, sriov: {resourceName: a/b, vlanID: 0, mtu: 0, minTxRateMbps: 0, maxTxRateMbps: 0, enableRdma: true}}",
		},
		{
			"ib-sriov", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b}}",
			"spec: {cniType: ib-sriov, enableCoordinator: true, disableIPAM: false, ibsriov: {resourceName: a/b, linkState: enable, rdmaIsolation: true}}",
		},
		{
			"ib-sriov, old spelling", "spec: {cniType: ib-sriov, ibsriov: {resourceName: a/b, ibKubernetesEnabled: true, ippools: {ipv4: [a]}}}",
			"spec: {cniType: ib-sriov, enableCoordinator: true, disableIPAM: false, ibsriov: {resourceName: a/b, linkState: enable, rdmaIsolation: true, ibKubernetesEnabled: true, ippools: {ipv4: [a], matchMasterSubnet: false}}}",
		},
		{
			"ipoib and ovs", "spec: {cniType: ovs, ipoib: {master: a, ippools: {}}, ovs: {bridge: b, ippools: {}}}",
			"spec: {cniType: ovs, enableCoordinator: true, disableIPAM: false, ipoib: {master: a, ippools: {matchMasterSubnet: false}}, ovs: {bridge: b, vlan: 0, ippools: {matchMasterSubnet: false}}}",
		},
		{
			"coordinator", "spec: {cniType: ipoib, ipoib: {master: a}, coordinator: {mode: disable, hijackCIDR: [10.96.0.10], policyRoutes: [{dst: 10.0.0.9, gw: 10.0.0.1}]}}",
			"spec: {cniType: ipoib, enableCoordinator: true, disableIPAM: false, ipoib: {master: a}, coordinator: {mode: disabled, hijackCIDR: [10.96.0.10/32], policyRoutes: [{dst: 10.0.0.9/32, gw: 10.0.0.1}]}}",
		},
		{
			"coordinator of custom", "spec: {enableCoordinator: true, coordinator: {mode: overlay}}",
			"spec: {cniType: custom, enableCoordinator: false, disableIPAM: false}",
		},
		{
			"inject", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: \" a \"}}",
			"metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: \" a \"}, labels: {cni.spidernet.io/rdma-resource-inject: a}}\nspec: {cniType: custom, enableCoordinator: false, disableIPAM: false}",
		},
		{
			"inject several", "metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: \"a,b\"}, labels: {cni.spidernet.io/rdma-resource-inject: a, other: c}}",
			"metadata: {annotations: {cni.spidernet.io/rdma-resource-inject: \"a,b\"}, labels: {other: c}}\nspec: {cniType: custom, enableCoordinator: false, disableIPAM: false}",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, got, want := NewCatalog(), networkFrom(t, tc.yaml), networkFrom(t, tc.want)
			c.Default(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again := texts(c.Default(got)); again != nil {
				t.Errorf("a second time: %q", again)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("a second time: -want +got:\n%s", diff)
			}
		})
	}
}

func TestNetworkResource(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"none", "cniType: macvlan, macvlan: {master: [a]}", ""},
		{"macvlan", "cniType: macvlan, macvlan: {master: [a], rdmaResourceName: a.io/b}", "a.io/b"},
		{"macvlan, enableRdma", "cniType: macvlan, macvlan: {master: [a], enableRdma: true, rdmaResourceName: a.io/b}", "a.io/b"},
		{"macvlan, no enableRdma", "cniType: macvlan, macvlan: {master: [a], enableRdma: false, rdmaResourceName: a.io/b}", ""},
		{"ipvlan", "cniType: ipvlan, ipvlan: {master: [a], rdmaResourceName: a.io/b}", "a.io/b"},
		{"vlan", "cniType: vlan, vlan: {master: [a], vlanID: 1, rdmaResourceName: a.io/b}", "a.io/b"},
		{"sriov", "cniType: sriov, sriov: {resourceName: a.io/b, enableRdma: false}", "a.io/b"},
		{"ib-sriov", "cniType: ib-sriov, ibsriov: {resourceName: a.io/b}", "a.io/b"},
		{"ipoib", "cniType: ipoib, ipoib: {master: ib0}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCatalog()
			c.Put(networkFrom(t, "spec: {"+tc.spec+"}"))
			n, ok := c.Network("spiderpool", "rail")
			if !ok || n.Resource != tc.want {
				t.Errorf("resource is %q (%t), want %q", n.Resource, ok, tc.want)
			}
		})
	}
}

func TestInjectValues(t *testing.T) {
	for annotation, want := range map[string][]string{
		"":               nil,
		" , ,":           nil,
		"a":              {"a"},
		" b ,a,, b,a b ": {"b", "a", "a b"},
	} {
		if diff := cmp.Diff(want, InjectValues(annotation)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", annotation, diff)
		}
	}
}

// What the network is made of belongs to its object's owner, who may change it.
func TestNetworkSharesNothing(t *testing.T) {
	c := NewCatalog()
	obj := networkFrom(t, "metadata: {annotations: {a: b}}\nspec: {cniType: macvlan, macvlan: {master: [a], ippools: {ipv4: [v4]}}}")
	c.Put(obj)
	obj.Annotations["a"] = "changed"
	obj.Spec.Macvlan.Master[0] = "changed"
	obj.Spec.Macvlan.IPPools.IPv4[0] = "changed"
	n, ok := c.Network("spiderpool", "rail")
	if !ok {
		t.Fatal("absent")
	}
	want := Network{
		Namespace: "spiderpool", Name: "rail", NAD: "rail", CNIName: "rail", CNIVersion: "0.3.1",
		Type: v2beta1.CNIMacvlan, Masters: []string{"a"}, Pools: Pools{IPv4: []string{"v4"}},
		Coordinated: true, IPAM: true, Annotations: map[string]string{"a": "b"},
	}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
