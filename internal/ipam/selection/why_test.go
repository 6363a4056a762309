package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// TestPassedOver has one pool for each reason.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	f := thePod(map[string]string{v2beta1.AnnotationPool: `{"ipv4":["rail2","off","node1","gpu","ml","team","app","net","bare","empty","reserved","six","broken","rail0"]}`})
	f.Closed = func(pool string) string {
		if pool == "broken" {
			return "not ready: it overlaps pool rail0"
		}
		return ""
	}
	s, err := Select(theCatalog(t), f)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"net1 IPv4: bare rail0",
		"not rail2: no pool of this name: did you mean rail0 or rail1?",
		"not off: disabled",
		"not node1: node2 is not in nodeName [node1]",
		"not gpu: its nodeAffinity gpu=h100 does not select node2",
		"not ml: namespace ai is not in namespaceName [ml]",
		"not team: its namespaceAffinity team=b does not select namespace ai",
		"not app: its podAffinity app=a does not select the pod",
		"not net: network ai/rail0 is not in multusName [ai/rail1]",
		"not empty: it has no addresses: ips without excludeIPs is empty",
		"not reserved: all its addresses are reserved by SpiderReservedIPs",
		"not six: of IPv6 (fd00::/64), and named for IPv4",
		"not broken: not ready: it overlaps pool rail0",
	}
	if diff := cmp.Diff(want, told(&s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNotKnown: what could not be read passes over nothing, and is said once.
func TestNotKnown(t *testing.T) {
	t.Parallel()
	f := thePod(map[string]string{v2beta1.AnnotationPool: `{"ipv4":["gpu","team","node1"]}`})
	f.Node.Labels, f.Namespace.Labels = nil, nil
	f.Interfaces[1].Pools.MatchMasterSubnet = true
	s, err := Select(theCatalog(t), f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"net1 IPv4: gpu team", "not node1: node2 is not in nodeName [node1]"}, told(&s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := []string{
		"nodeAffinity of pools is not considered: the labels of node2 are not known",
		"matchMasterSubnet of network ai/rail0 is not considered: the addresses of its parent are not known",
		"namespaceAffinity of pools is not considered: the labels of namespace ai are not known",
	}
	if diff := cmp.Diff(want, s.Warnings); diff != "" {
		t.Errorf("warnings: -want +got:\n%s", diff)
	}
	f.Node.Name = ""
	if s, err = Select(theCatalog(t), f); err != nil || told(&s)[0] != "net1 IPv4: gpu team node1" {
		t.Errorf("on no node yet: %q, %v", told(&s), err)
	}
}

// TestOneFamilyOff: a pod for both families gets the one that the cluster has.
func TestOneFamilyOff(t *testing.T) {
	t.Parallel()
	c := theCatalog(t)
	config := policy.DefaultConfig()
	config.EnableIPv6 = false
	c.SetConfig(config)
	f := thePod(map[string]string{v2beta1.AnnotationPool: `{"ipv4":["rail0"],"ipv6":["six"]}`})
	s, err := Select(c, f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"net1 IPv4: rail0", "not six: of IPv6, which conf.yml has off (enableIPv6: false)"}, told(&s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRequestedAddresses: pools without the address are passed over.
func TestRequestedAddresses(t *testing.T) {
	t.Parallel()
	f := thePod(map[string]string{v2beta1.AnnotationPool: `{"ipv4":["rail0","rail0-b"],"ipv6":["six"],"cleangateway":true}`})
	f.Interfaces[1].IPs = prefixes("10.0.0.150/24", "fd00::9/128")
	s, err := Select(theCatalog(t), f)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"net1 IPv4: rail0-b exactly 10.0.0.150", "net1 IPv6: six exactly fd00::9",
		"not rail0: it has no 10.0.0.150, which annotation k8s.v1.cni.cncf.io/networks asks for",
	}
	if diff := cmp.Diff(want, told(&s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !s.NICs[0].CleanGateway {
		t.Error("the interface has a default route, and cleangateway is true")
	}
}

func TestMatchMasterSubnet(t *testing.T) {
	t.Parallel()
	f := thePod(nil)
	f.Interfaces[1].Pools = policy.Pools{IPv4: []string{"rail*"}, MatchMasterSubnet: true}
	f.Interfaces[1].Parent = &Parent{Name: "enp1s0", Addresses: prefixes("10.1.0.254/24")}
	s, err := Select(theCatalog(t), f)
	if err != nil || told(&s)[0] != "net1 IPv4: rail1" {
		t.Errorf("%q, %v", told(&s), err)
	}
}

// TestGoing: a pool that is being deleted gives nothing more.
func TestGoing(t *testing.T) {
	t.Parallel()
	c := theCatalog(t)
	c.Put(&v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &metav1.Time{}},
		Spec:       v2beta1.IPPoolSpec{Subnet: "10.30.0.0/24", IPs: []string{"10.30.0.1"}},
	})
	s, err := Select(c, thePod(map[string]string{v2beta1.AnnotationPool: `{"ipv4":["going","rail0"]}`}))
	if diff := cmp.Diff([]string{"net1 IPv4: rail0", "not going: being deleted"}, told(&s)); diff != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}
