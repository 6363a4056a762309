package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
)

func TestDefaultPool(t *testing.T) {
	t.Parallel()
	yes := true
	c := catalogOf(subnetWith("sub", "10.5.0.0/24", []string{"10.5.0.10-10.5.0.99"}, func(s *v2beta1.SpiderSubnet) {
		s.Spec.Gateway = new("10.5.0.1")
		s.Spec.Routes = []v2beta1.Route{{Dst: "10.0.0.0/8", Gw: "10.5.0.2"}}
	}))
	owner := metav1.OwnerReference{APIVersion: "spiderpool.spidernet.io/v2beta1", Kind: "SpiderSubnet", Name: "sub", UID: "uid-sub", BlockOwnerDeletion: &yes}
	for _, tt := range []struct {
		name     string
		pool     *v2beta1.SpiderIPPool
		want     *v2beta1.SpiderIPPool
		warnings []string
	}{
		{
			"as 003 prints it", poolWith("a", "172.16.11.0/16", []string{"172.16.11.1-172.16.11.200"}),
			poolWith("a", "172.16.0.0/16", []string{"172.16.11.1-172.16.11.200"}, func(p *v2beta1.SpiderIPPool) {
				p.Labels = map[string]string{"ipam.spidernet.io/ippool-cidr": "172-16-0-0-16"}
				p.Spec.IPVersion = new(int64(4))
			}),
			[]string{`spec.subnet: "172.16.11.0/16" has host bits set: stored as "172.16.0.0/16"`},
		},
		{
			"addresses in disorder", poolWith("a", "FD00:0::/64", []string{"fd00::9-fd00::20", "fd00::5", "fd00::6", "fd00::19-fd00::30"}, func(p *v2beta1.SpiderIPPool) {
				p.Finalizers = []string{"example.com/x"}
				p.Labels = map[string]string{"a": "b"}
			}),
			poolWith("a", "fd00::/64", []string{"fd00::5-fd00::6", "fd00::9-fd00::30"}, func(p *v2beta1.SpiderIPPool) {
				p.Finalizers = []string{"example.com/x"}
				p.Labels = map[string]string{"a": "b", "ipam.spidernet.io/ippool-cidr": "fd00---64"}
				p.Spec.IPVersion = new(int64(6))
			}),
			[]string{`spec.ips[3]: "fd00::19-fd00::30" overlaps another item of the list: merged into ["fd00::5-fd00::6" "fd00::9-fd00::30"]`},
		},
		{
			"of a SpiderSubnet", poolWith("a", "10.5.0.0/24", nil, func(p *v2beta1.SpiderIPPool) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "spiderpool.spidernet.io/v2beta1", Kind: "SpiderSubnet", Name: "sub", UID: "gone"}}
			}),
			poolWith("a", "10.5.0.0/24", nil, func(p *v2beta1.SpiderIPPool) {
				p.Labels = map[string]string{"ipam.spidernet.io/ippool-cidr": "10-5-0-0-24", "ipam.spidernet.io/owner-spider-subnet": "sub"}
				p.OwnerReferences = []metav1.OwnerReference{owner}
				p.Spec.IPVersion = new(int64(4))
				p.Spec.Gateway = new("10.5.0.1")
				p.Spec.Routes = []v2beta1.Route{{Dst: "10.0.0.0/8", Gw: "10.5.0.2"}}
			}), nil,
		},
		{
			"of a SpiderSubnet with a gateway of its own", poolWith("a", "10.5.0.0/24", nil, func(p *v2beta1.SpiderIPPool) {
				p.Spec.Gateway = new("10.5.0.3")
				p.Spec.Routes = []v2beta1.Route{{Dst: "10.1.0.0/16", Gw: "10.5.0.3"}}
			}),
			poolWith("a", "10.5.0.0/24", nil, func(p *v2beta1.SpiderIPPool) {
				p.Labels = map[string]string{"ipam.spidernet.io/ippool-cidr": "10-5-0-0-24", "ipam.spidernet.io/owner-spider-subnet": "sub"}
				p.OwnerReferences = []metav1.OwnerReference{owner}
				p.Spec.IPVersion = new(int64(4))
				p.Spec.Gateway = new("10.5.0.3")
				p.Spec.Routes = []v2beta1.Route{{Dst: "10.1.0.0/16", Gw: "10.5.0.3"}}
			}), nil,
		},
		{
			"what does not parse", poolWith("a", "x/24", []string{"10.0.0.5", "y", "10.0.0.1"}),
			poolWith("a", "x/24", []string{"10.0.0.5", "y", "10.0.0.1"}, func(p *v2beta1.SpiderIPPool) {
			}), nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			review := c.Default(tt.pool)
			if diff := cmp.Diff(tt.want, tt.pool); diff != "" {
				t.Errorf("Default (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, review.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if again := c.Default(tt.pool); len(again.Warnings) > 0 {
				t.Errorf("the second time: %q", again.Warnings)
			}
			if diff := cmp.Diff(tt.want, tt.pool); diff != "" {
				t.Errorf("the second time (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabelOfCIDR has labels that the API server takes.
func TestLabelOfCIDR(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10.0.0.0/24":       "10-0-0-0-24",
		"::/0":              "0---0",
		"::1:0/112":         "0--1-0-112",
		"2001:db8:1::/48":   "2001-db8-1---48",
		"fd00:1:2:3:4::/80": "fd00-1-2-3-4---80",
	} {
		prefix, err := parsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := cidrLabel(prefix); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestPrinted has the eight rails of spec/003 with the /16 and host bits of its
// text: each is accepted with a warning, beside those before it and applied
// once more as printed.
func TestPrinted(t *testing.T) {
	t.Parallel()
	c := NewCatalog()
	printed := func(rail string) *v2beta1.SpiderIPPool {
		return poolWith("gpu-net"+rail, "172.16."+rail+".0/16", []string{"172.16." + rail + ".1-172.16." + rail + ".200"}, func(p *v2beta1.SpiderIPPool) {
			p.Spec.Gateway = new("172.16." + rail + ".254")
		})
	}
	rails := []string{"11", "12", "13", "14", "15", "16", "17", "18"}
	for _, rail := range rails {
		pool := printed(rail)
		if r := c.Default(pool); len(r.Warnings) != 1 {
			t.Errorf("rail %s: warnings %q, want one about host bits", rail, r.Warnings)
		}
		if r := c.Review(pool, nil); !r.OK() || len(r.Warnings) > 0 {
			t.Errorf("rail %s: %v, warnings %q", rail, r.Errors, r.Warnings)
		}
		c.Put(pool)
	}
	for _, stored := range rails {
		old, again := printed(stored), printed(stored)
		c.Default(old)
		c.Default(again)
		if r := c.Review(again, old); !r.OK() {
			t.Errorf("rail %s applied again: %v", stored, r.Errors)
		}
		if diff := cmp.Diff(old, again); diff != "" {
			t.Errorf("rail %s applied again (-stored +now):\n%s", stored, diff)
		}
	}
	if got := len(c.Pools()); got != len(rails) {
		t.Errorf("%d pools, want %d", got, len(rails))
	}
}

func TestDefaultSubnetAndReserved(t *testing.T) {
	t.Parallel()
	c := NewCatalog()
	subnet := subnetWith("sub", "10.5.0.9/24", []string{"10.5.0.9", "10.5.0.8"})
	want := subnetWith("sub", "10.5.0.0/24", []string{"10.5.0.8-10.5.0.9"}, func(s *v2beta1.SpiderSubnet) {
		s.Labels = map[string]string{"ipam.spidernet.io/subnet-cidr": "10-5-0-0-24"}
		s.Spec.IPVersion = new(int64(4))
	})
	c.Default(subnet)
	if diff := cmp.Diff(want, subnet); diff != "" {
		t.Errorf("subnet (-want +got):\n%s", diff)
	}
	reserved := reservedWith("r", "fd00::2", "fd00::1")
	c.Default(reserved)
	wantReserved := reservedWith("r", "fd00::1-fd00::2")
	wantReserved.Spec.IPVersion = new(int64(6))
	if diff := cmp.Diff(wantReserved, reserved); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
}
