package policy

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
)

func TestSubnetRules(t *testing.T) {
	t.Parallel()
	c := catalogOf(
		subnetWith("sub", "10.5.0.0/24", []string{"10.5.0.10-10.5.0.99"}),
		poolWith("orphan", "10.6.0.0/24", []string{"10.6.0.10-10.6.0.19", "10.6.0.30"}),
		poolWith("empty", "10.7.0.0/24", nil),
	)
	for _, tt := range []struct {
		name   string
		subnet *v2beta1.SpiderSubnet
		want   said
	}{
		{"apart", subnetWith("new", "10.8.0.0/24", []string{"10.8.0.1"}), said{}},
		{"no subnet", subnetWith("new", "", nil), said{Errors: []string{
			`spec.subnet: Required value: want a CIDR such as "10.0.0.0/24" or "fd00::/64"`,
		}}},
		{"a name that is no label", subnetWith(strings.Repeat("a", 64), "10.8.0.0/24", nil), said{Errors: []string{
			`metadata.name: Invalid value: "` + strings.Repeat("a", 64) + `": is a label of the subnet's pools: must be no more than 63 bytes`,
		}}},
		{"the same", subnetWith("new", "10.5.0.0/24", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "10.5.0.0/24": overlaps the SpiderSubnet sub (10.5.0.0/24): want one apart`,
		}}},
		{"a smaller one", subnetWith("new", "10.5.0.128/25", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "10.5.0.128/25": overlaps the SpiderSubnet sub (10.5.0.0/24): want one apart`,
		}}},
		{"of a pool that it holds", subnetWith("new", "10.6.0.0/24", []string{"10.6.0.1-10.6.0.99"}), said{}},
		{"of a pool that it lacks", subnetWith("new", "10.6.0.0/24", []string{"10.6.0.15-10.6.0.99"}), said{Errors: []string{
			`spec.ips: Invalid value: "10.6.0.15-10.6.0.99": lacks addresses that pool orphan of this CIDR has: want 10.6.0.10-10.6.0.19 in it`,
		}}},
		{"around pools", subnetWith("new", "10.6.0.0/15", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "10.6.0.0/15": overlaps the subnet 10.7.0.0/24 of pool empty: want the same subnet, or one apart`,
			`spec.subnet: Invalid value: "10.6.0.0/15": overlaps the subnet 10.6.0.0/24 of pool orphan: want the same subnet, or one apart`,
		}}},
		{"gateway and routes", subnetWith("new", "10.8.0.0/24", []string{"10.8.0.1-10.8.0.9"}, func(s *v2beta1.SpiderSubnet) {
			s.Spec.Gateway = new("10.8.0.9")
			s.Spec.Routes = []v2beta1.Route{{Dst: "10.0.0.0/8", Gw: "10.9.0.1"}}
		}), said{Errors: []string{
			`spec.gateway: Invalid value: "10.8.0.9": is one of the addresses for pods: take it from ips, or add it to excludeIPs`,
			`spec.routes[0].gw: Invalid value: "10.9.0.1": is not within the subnet 10.8.0.0/24 (10.8.0.0-10.8.0.255)`,
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, saidBy(c.Review(tt.subnet, nil))); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubnetChange(t *testing.T) {
	t.Parallel()
	stored := subnetWith("sub", "10.5.0.0/24", []string{"10.5.0.10-10.5.0.99"})
	c := catalogOf(stored, poolWith("a", "10.5.0.0/24", []string{"10.5.0.20-10.5.0.29"}))
	for _, tt := range []struct {
		name   string
		change func(*v2beta1.SubnetSpec)
		want   []string
	}{
		{"free addresses", func(s *v2beta1.SubnetSpec) { s.IPs = []string{"10.5.0.20-10.5.0.29"} }, nil},
		{"addresses of a pool", func(s *v2beta1.SubnetSpec) { s.ExcludeIPs = []string{"10.5.0.25-10.5.0.50"} }, []string{
			`spec.ips: Forbidden: pool a has 10.5.0.25-10.5.0.29: take them from the pool first, or keep them here`,
		}},
		{"the subnet", func(s *v2beta1.SubnetSpec) { s.Subnet = "10.5.0.0/25" }, []string{
			`spec.subnet: Forbidden: is immutable: it is 10.5.0.0/24, not 10.5.0.0/25; delete the subnet and create another`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed := stored.DeepCopy()
			tt.change(&changed.Spec)
			if diff := cmp.Diff(tt.want, saidBy(c.Review(changed, stored)).Errors); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubnetDelete(t *testing.T) {
	t.Parallel()
	subnet := subnetWith("sub", "10.5.0.0/24", nil)
	c := catalogOf(subnet, poolWith("a", "10.5.0.0/24", nil), poolWith("b", "10.5.0.0/24", nil))
	if r := c.ReviewDelete(subnet); !r.OK() {
		t.Errorf("by default: %v", r.Errors)
	}
	config := DefaultConfig()
	config.RefuseDeleteInUse = true
	c.SetConfig(config)
	want := []string{`metadata.name: Forbidden: SpiderSubnet sub has 2 pools, such as a: delete them first, or set enableValidatingResourcesDeletedWebhook: false in the ConfigMap spiderpool-conf to have it go when they do`}
	if diff := cmp.Diff(want, saidBy(c.ReviewDelete(subnet)).Errors); diff != "" {
		t.Errorf("ReviewDelete (-want +got):\n%s", diff)
	}
}

// TestSubnetsOff has SpiderSubnets that the configuration gives no meaning.
func TestSubnetsOff(t *testing.T) {
	t.Parallel()
	c := catalogOf(subnetWith("sub", "10.5.0.0/24", nil))
	config := DefaultConfig()
	config.EnableSpiderSubnet = false
	c.SetConfig(config)
	pool := poolWith("a", "10.5.0.0/24", []string{"10.5.0.1"})
	if r := c.Review(pool, nil); !r.OK() {
		t.Errorf("pool: %v", r.Errors)
	}
	if c.Default(pool); len(pool.OwnerReferences) != 0 {
		t.Errorf("owners of the pool: %v", pool.OwnerReferences)
	}
	want := []string{`spec: has no effect: the ConfigMap spiderpool-conf has enableSpiderSubnet: false`}
	if diff := cmp.Diff(want, c.Review(subnetWith("new", "10.6.0.0/24", nil), nil).Warnings); diff != "" {
		t.Errorf("warnings of a subnet (-want +got):\n%s", diff)
	}
}

// TestSubnetAndPoolBothAdmitted has a subnet and a pool that it lacks: the later
// one is to blame.
func TestSubnetAndPoolBothAdmitted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name               string
		subnetAt, poolAt   int64
		subnetOK, isPoolOK bool
	}{
		{"subnet first", 1, 2, true, false},
		{"pool first", 2, 1, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			subnet := subnetWith("sub", "10.5.0.0/24", []string{"10.5.0.10"})
			pool := poolWith("a", "10.5.0.0/24", []string{"10.5.0.11"})
			subnet.CreationTimestamp = metav1.NewTime(time.Unix(tt.subnetAt, 0))
			pool.CreationTimestamp = metav1.NewTime(time.Unix(tt.poolAt, 0))
			c := catalogOf(subnet, pool)
			if got := c.Review(subnet, nil).OK(); got != tt.subnetOK {
				t.Errorf("subnet accepted: %v, want %v", got, tt.subnetOK)
			}
			if got := c.Review(pool, nil).OK(); got != tt.isPoolOK {
				t.Errorf("pool accepted: %v, want %v", got, tt.isPoolOK)
			}
		})
	}
}

func TestSubnets(t *testing.T) {
	t.Parallel()
	c := catalogOf(subnetWith("b", "10.1.0.0/24", nil), subnetWith("broken", "x", nil), subnetWith("a", "10.2.0.0/24", nil))
	var names []string
	for _, s := range c.Subnets() {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("Subnets (-want +got):\n%s", diff)
	}
	if _, ok := c.Subnet("broken"); ok {
		t.Error("a subnet that breaks rules is answered")
	}
	if s, ok := c.subnetFor(netip.MustParsePrefix("10.1.0.7/24")); !ok || s.Name != "b" {
		t.Errorf("subnet of 10.1.0.7/24: %q, %v", s.Name, ok)
	}
	c.Remove(subnetWith("b", "", nil))
	if s, ok := c.subnetFor(netip.MustParsePrefix("10.1.0.0/24")); ok {
		t.Errorf("subnet that was removed: %q", s.Name)
	}
}
