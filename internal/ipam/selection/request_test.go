package selection

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/ipam/holder"
)

// TestRequest: two interfaces that share a pool ask for it one by one, so that
// the holder gives each an address of its own.
func TestRequest(t *testing.T) {
	t.Parallel()
	f := thePod(map[string]string{v2beta1.AnnotationPool: `{"ipv4":["rail0-b","rail0"],"ipv6":["six"]}`})
	f.Pod.Name = "train-3"
	f.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "train", Controller: new(true)}}
	f.Interfaces = append(f.Interfaces, Interface{Name: "net2", IPAM: true, IPs: prefixes("10.0.0.7/24")})
	s, err := Select(theCatalog(t), f)
	if err != nil {
		t.Fatal(err)
	}
	key := holder.Key{PodUID: "u1", Sandbox: "s1"}
	v4 := netip.MustParsePrefix("10.0.0.0/24")
	six := holder.Choice{Pools: []holder.PoolRef{{Name: "six", Subnet: netip.MustParsePrefix("fd00::/64")}}}
	want := holder.Request{
		Key: key, Pod: types.NamespacedName{Namespace: "ai", Name: "train-3"}, Identity: "StatefulSet/ai/train/3",
		NICs: []holder.NIC{
			{Interface: "net1", Choices: []holder.Choice{{Pools: []holder.PoolRef{{Name: "rail0-b", Subnet: v4}, {Name: "rail0", Subnet: v4}}}, six}},
			{Interface: "net2", Choices: []holder.Choice{{Pools: []holder.PoolRef{{Name: "rail0", Subnet: v4}}, Exact: netip.MustParseAddr("10.0.0.7")}, six}},
		},
	}
	if diff := cmp.Diff(want, s.Request(key), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
