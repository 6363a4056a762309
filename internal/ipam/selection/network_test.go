package selection

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
	"railhead/internal/policy/nad"
)

// TestConfigureOurs: of a NetworkAttachmentDefinition that we make, what its
// SpiderMultusConfig says of pools comes back.
func TestConfigureOurs(t *testing.T) {
	t.Parallel()
	c := policy.NewCatalog()
	resource := "example.com/vf"
	c.Put(&v2beta1.SpiderMultusConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "vf"}, Spec: v2beta1.MultusConfigSpec{
		CNIType: new(v2beta1.CNISRIOV),
		SRIOV:   &v2beta1.SRIOVSpec{ResourceName: resource, IPPools: &v2beta1.NetworkPools{IPv4: []string{"b", "a*"}, IPv6: []string{"c"}, MatchMasterSubnet: new(true)}},
	}})
	network, ok := c.Network("ai", "vf")
	if !ok {
		t.Fatal("the network breaks rules")
	}
	made, err := nad.For(network)
	if err != nil {
		t.Fatal(err)
	}
	var i Interface
	if err := i.Configure(made.Spec.Config); err != nil || !i.IPAM {
		t.Fatalf("IPAM %v, %v, of %s", i.IPAM, err, made.Spec.Config)
	}
	if diff := cmp.Diff(network.Pools, i.Pools); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config string
		want   Interface
		fails  bool
	}{
		"one plugin":         {config: `{"type":"macvlan","ipam":{"type":"spiderpool","default_ipv4_ippool":["a"],"clean_gateway":true}}`, want: Interface{IPAM: true, Pools: policy.Pools{IPv4: []string{"a"}}, CleanGateway: true}},
		"without pools":      {config: `{"plugins":[{"type":"tuning"},{"type":"macvlan","ipam":{"type":"spiderpool"}}]}`, want: Interface{IPAM: true}},
		"of another IPAM":    {config: `{"plugins":[{"type":"macvlan","ipam":{"type":"whereabouts"}},{"type":"x","ipam":{"type":"spiderpool"}}]}`},
		"without an IPAM":    {config: `{"type":"ib-sriov"}`},
		"all keys":           {config: `{"ipam":{"type":"spiderpool","log_level":"debug","log_file_path":"/x","log_file_max_size":1,"log_file_max_age":1,"log_file_max_count":1,"ipam_unix_socket_path":"/y","Match_Master_Subnet":true}}`, want: Interface{IPAM: true, Pools: policy.Pools{MatchMasterSubnet: true}}},
		"another's keys":     {config: `{"ipam":{"type":"host-local","subnet":"10.0.0.0/24"}}`},
		"an unknown key":     {config: `{"ipam":{"type":"spiderpool","ippool":["a"]}}`, want: Interface{IPAM: true}, fails: true},
		"no JSON":            {config: `{`, fails: true},
		"pools of one word":  {config: `{"ipam":{"type":"spiderpool","default_ipv4_ippool":"a"}}`, fails: true},
		"an IPAM of no type": {config: `{"plugins":[{"ipam":{}},{"ipam":{"type":"spiderpool","default_ipv6_ippool":["six"]}}]}`, want: Interface{IPAM: true, Pools: policy.Pools{IPv6: []string{"six"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got Interface
			if err := got.Configure(tt.config); (err != nil) != tt.fails {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestInterfacesOf(t *testing.T) {
	t.Parallel()
	pod := &metav1.ObjectMeta{Namespace: "ai", Name: "train", Annotations: map[string]string{
		cniv1.AnnotationDefaultNetwork: "calico",
		cniv1.AnnotationNetworks:       `[{"name":"rail0"},{"name":"rail1","namespace":"ml","interface":"rdma1","ips":["10.1.0.5"]},{"name":"gone"},{"name":"onnode"}]`,
	}}
	errGone := errors.New("there is no NetworkAttachmentDefinition ai/gone")
	find := func(key types.NamespacedName) (string, error) {
		switch key.String() {
		case "kube-system/calico":
			return `{"type":"calico"}`, nil
		case "ai/rail0", "ml/rail1":
			return `{"ipam":{"type":"spiderpool","default_ipv4_ippool":["` + key.Name + `"]}}`, nil
		case "ai/onnode":
			return "", nil
		}
		return "", errGone
	}
	got, err := InterfacesOf(pod, find)
	want := []Interface{
		{Name: "eth0", Network: types.NamespacedName{Namespace: "kube-system", Name: "calico"}},
		{Name: "net1", Network: types.NamespacedName{Namespace: "ai", Name: "rail0"}, IPAM: true, Pools: policy.Pools{IPv4: []string{"rail0"}}},
		{Name: "rdma1", Network: types.NamespacedName{Namespace: "ml", Name: "rail1"}, IPAM: true, Pools: policy.Pools{IPv4: []string{"rail1"}}, IPs: prefixes("10.1.0.5/32")},
		{Name: "net3", Network: types.NamespacedName{Namespace: "ai", Name: "gone"}},
		{Name: "net4", Network: types.NamespacedName{Namespace: "ai", Name: "onnode"}},
	}
	equal := cmp.Comparer(func(a, b Interface) bool { return a.Name == b.Name && a.Network == b.Network && a.IPAM == b.IPAM })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want[2].IPs, got[2].IPs, cmpopts.EquateComparable(want[2].IPs[0])); diff != "" {
		t.Errorf("addresses: -want +got:\n%s", diff)
	}
	if err != nil || !errors.Is(got[3].Err, errGone) || got[4].Err == nil || got[1].Err != nil {
		t.Errorf("errors %v; %v, %v and %v of interfaces", err, got[1].Err, got[3].Err, got[4].Err)
	}
	_, err = Select(theCatalog(t), &Facts{Pod: *pod, Interfaces: got})
	wantErr := `pod ai/train: interface net3: there is no NetworkAttachmentDefinition ai/gone
interface net4: NetworkAttachmentDefinition ai/onnode has no configuration: it is looked up on the node, and whether its addresses are of pools is not known`
	if err == nil || !errors.Is(err, errGone) || err.Error() != wantErr {
		t.Errorf("error %v, want %s", err, wantErr)
	}
	got, err = InterfacesOf(&metav1.ObjectMeta{Namespace: "ai", Annotations: map[string]string{cniv1.AnnotationNetworks: "rail0,a/b/c"}}, find)
	if len(got) != 2 || !got[1].IPAM || err == nil {
		t.Errorf("of one good network and a bad one: %+v, %v", got, err)
	}
}

// TestConfigureWrong wants the error of a wrong type to name the key and what it is to be.
func TestConfigureWrong(t *testing.T) {
	t.Parallel()
	i := Interface{Network: types.NamespacedName{Namespace: "ai", Name: "rail0"}}
	err := i.Configure(`{"plugins":[{"ipam":{"type":"spiderpool","default_ipv4_ippool":"rail0"}}]}`)
	const want = `the configuration of NetworkAttachmentDefinition ai/rail0 cannot be read: key "plugins.ipam.default_ipv4_ippool" is a string: want "ipam": {"type": "spiderpool", "default_ipv4_ippool": ["name"]} in a plugin`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	err = i.Configure(`{"plugins":[{"ipam":{"type":"spiderpool","default_ipv4_ipool":["rail0"]}}]}`)
	if err == nil || !strings.HasPrefix(err.Error(), `NetworkAttachmentDefinition ai/rail0: ipam.default_ipv4_ipool: unknown key: did you mean "default_ipv4_ippool"? There are type, `) {
		t.Errorf("error %v", err)
	}
}

// FuzzConfigure wants any text to be an error, somebody else's addresses, or
// pools that come back when they are written again.
func FuzzConfigure(f *testing.F) {
	f.Add(`{"type":"macvlan","ipam":{"type":"spiderpool","default_ipv4_ippool":["a"]}}`)
	f.Add(`{"plugins":[{"ipam":{"type":"spiderpool","default_ipv6_ippool":["b"],"match_master_subnet":true}}]}`)
	f.Add(`{"plugins":null,"ipam":{"type":"host-local"}}`)
	f.Fuzz(func(t *testing.T, config string) {
		var first, again Interface
		if err := first.Configure(config); err != nil || !first.IPAM {
			if diff := cmp.Diff(Interface{}, first); diff != "" {
				t.Errorf("%s: %v, and yet:\n%s", config, err, diff)
			}
			return
		}
		text, err := json.Marshal(map[string]any{"ipam": map[string]any{
			"type": ipamType, "default_ipv4_ippool": first.Pools.IPv4, "default_ipv6_ippool": first.Pools.IPv6,
			"match_master_subnet": first.Pools.MatchMasterSubnet, "clean_gateway": first.CleanGateway,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Configure(string(text)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, written as %s (-first +again):\n%s", config, text, diff)
		}
	})
}
