package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
)

// poolWith is a pool with one change after another.
func poolWith(name, subnet string, ips []string, changes ...func(*v2beta1.SpiderIPPool)) *v2beta1.SpiderIPPool {
	pool := &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec:       v2beta1.IPPoolSpec{Subnet: subnet, IPs: ips},
	}
	for _, change := range changes {
		change(pool)
	}
	return pool
}

// poolSpec is a pool of 10.0.0.0/24 with addresses 10 to 20 and a changed spec.
func poolSpec(change func(*v2beta1.IPPoolSpec)) *v2beta1.SpiderIPPool {
	return poolWith("a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.20"}, func(p *v2beta1.SpiderIPPool) { change(&p.Spec) })
}

// said is a Review as texts.
type said struct {
	Errors, Warnings []string
}

func saidBy(r Review) said {
	s := said{Warnings: r.Warnings}
	for _, e := range r.Errors {
		s.Errors = append(s.Errors, e.Error())
	}
	return s
}

func TestPoolRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		pool *v2beta1.SpiderIPPool
		want said
	}{
		{"plain", poolSpec(func(*v2beta1.IPPoolSpec) {}), said{}},
		{"no addresses yet", poolWith("a", "10.0.0.0/24", nil), said{Warnings: []string{"spec.ips: is empty: the pool gives no addresses"}}},
		{"no subnet", poolWith("a", "", nil), said{Errors: []string{
			`spec.subnet: Required value: want a CIDR such as "10.0.0.0/24" or "fd00::/64"`,
		}}},
		{"subnet without length", poolWith("a", "10.0.0.0", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "10.0.0.0": "10.0.0.0" has no prefix length: want a CIDR such as "10.0.0.0/24" or "fd00::/64"`,
		}}},
		{"subnet no CIDR", poolWith("a", "10.0.0/24", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "10.0.0/24": "10.0.0/24" is no CIDR: want one such as "10.0.0.0/24" or "fd00::/64"`,
		}}},
		{"subnet of IPv4 within IPv6", poolWith("a", "::ffff:10.0.0.0/120", nil), said{Errors: []string{
			`spec.subnet: Invalid value: "::ffff:10.0.0.0/120": "::ffff:10.0.0.0/120" is an IPv4 address within IPv6: want an IPv4 CIDR`,
		}}},
		{"host bits", poolWith("a", "172.16.11.0/16", []string{"172.16.11.1-172.16.11.200"}), said{Warnings: []string{
			`spec.subnet: "172.16.11.0/16" has host bits set: it means "172.16.0.0/16"`,
		}}},
		{"version not the subnet's", poolSpec(func(s *v2beta1.IPPoolSpec) { s.IPVersion = new(int64(6)) }), said{Errors: []string{
			`spec.ipVersion: Invalid value: 6: the subnet 10.0.0.0/24 is IPv4: want 4, or leave it out`,
		}}},
		{"version 5", poolSpec(func(s *v2beta1.IPPoolSpec) { s.IPVersion = new(int64(5)) }), said{Errors: []string{
			`spec.ipVersion: Invalid value: 5: want 4 or 6, or leave it out`,
		}}},
		{"addresses", poolSpec(func(s *v2beta1.IPPoolSpec) {
			s.IPs = []string{"10.0.0.9-10.0.0.1", "10.0.1.1", "10.0.0.250-10.0.1.2", "fd00::1", "10.0.0.0/28", "10.0.0.1 - 10.0.0.2", "x", "10.0.0.1-fd00::1", "fe80::1%eth0", "10.0.0.7"}
		}), said{Errors: []string{
			`spec.ips[0]: Invalid value: "10.0.0.9-10.0.0.1": last address 10.0.0.1 is before first 10.0.0.9: want "first-last"`,
			`spec.ips[1]: Invalid value: "10.0.1.1": is not within the subnet 10.0.0.0/24 (10.0.0.0-10.0.0.255)`,
			`spec.ips[2]: Invalid value: "10.0.0.250-10.0.1.2": is not within the subnet 10.0.0.0/24 (10.0.0.0-10.0.0.255)`,
			`spec.ips[3]: Invalid value: "fd00::1": is IPv6, and the subnet 10.0.0.0/24 is IPv4`,
			`spec.ips[4]: Invalid value: "10.0.0.0/28": a CIDR is not accepted here: want an address or a range "first-last"`,
			`spec.ips[5]: Invalid value: "10.0.0.1 - 10.0.0.2": "10.0.0.1 " has spaces around it: want none`,
			`spec.ips[6]: Invalid value: "x": "x" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
			`spec.ips[7]: Invalid value: "10.0.0.1-fd00::1": first address 10.0.0.1 is IPv4 and last fd00::1 is IPv6: want both of one family`,
			`spec.ips[8]: Invalid value: "fe80::1%eth0": "fe80::1%eth0" has a zone: want fe80::1`,
		}}},
		{"overlap inside a list", poolSpec(func(s *v2beta1.IPPoolSpec) {
			s.IPs = []string{"10.0.0.10-10.0.0.20", "10.0.0.30", "10.0.0.15-10.0.0.16", "10.0.0.20"}
		}), said{Errors: []string{
			`spec.ips[2]: Invalid value: "10.0.0.15-10.0.0.16": overlaps "10.0.0.10-10.0.0.20", item 0 of the same list: want each address once`,
			`spec.ips[3]: Invalid value: "10.0.0.20": overlaps "10.0.0.10-10.0.0.20", item 0 of the same list: want each address once`,
		}}},
		{"excluded", poolSpec(func(s *v2beta1.IPPoolSpec) { s.ExcludeIPs = []string{"10.0.0.12", "10.0.0.30", "10.9.0.1"} }), said{
			Errors: []string{`spec.excludeIPs[2]: Invalid value: "10.9.0.1": is not within the subnet 10.0.0.0/24 (10.0.0.0-10.0.0.255)`},
		}},
		{"excluded without effect", poolSpec(func(s *v2beta1.IPPoolSpec) { s.ExcludeIPs = []string{"10.0.0.12", "10.0.0.30"} }), said{
			Warnings: []string{`spec.excludeIPs[1]: "10.0.0.30" has no effect: ips has none of it`},
		}},
		{"gateway outside", poolSpec(func(s *v2beta1.IPPoolSpec) { s.Gateway = new("10.0.1.1") }), said{Errors: []string{
			`spec.gateway: Invalid value: "10.0.1.1": is not within the subnet 10.0.0.0/24 (10.0.0.0-10.0.0.255)`,
		}}},
		{"gateway of the other family", poolSpec(func(s *v2beta1.IPPoolSpec) { s.Gateway = new("fd00::1") }), said{Errors: []string{
			`spec.gateway: Invalid value: "fd00::1": is IPv6, and the subnet 10.0.0.0/24 is IPv4`,
		}}},
		{"gateway among addresses", poolSpec(func(s *v2beta1.IPPoolSpec) { s.Gateway = new("10.0.0.12") }), said{Errors: []string{
			`spec.gateway: Invalid value: "10.0.0.12": is one of the addresses for pods: take it from ips, or add it to excludeIPs`,
		}}},
		{"gateway excluded", poolSpec(func(s *v2beta1.IPPoolSpec) {
			s.Gateway, s.ExcludeIPs = new("10.0.0.12"), []string{"10.0.0.12"}
		}), said{}},
		{"gateway no address", poolSpec(func(s *v2beta1.IPPoolSpec) { s.Gateway = new("") }), said{Errors: []string{
			`spec.gateway: Invalid value: "": "" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
		}}},
		{"routes", poolSpec(func(s *v2beta1.IPPoolSpec) {
			s.Routes = []v2beta1.Route{
				{Dst: "10.1.0.0/16", Gw: "10.0.0.1"},
				{Dst: "0.0.0.0/0", Gw: "10.0.0.1"},
				{Dst: "10.1.0.0/16", Gw: "10.0.0.2"},
				{Dst: "fd00::/64", Gw: "10.0.0.2"},
				{Dst: "10.2.0.0", Gw: "10.0.1.2"},
				{Dst: "10.3.1.0/16", Gw: "10.0.0.2"},
			}
		}), said{
			Errors: []string{
				`spec.routes[1].dst: Invalid value: "0.0.0.0/0": is the default route: name the gateway in spec.gateway instead`,
				`spec.routes[2].dst: Invalid value: "10.1.0.0/16": item 0 has this destination already: want one route each`,
				`spec.routes[3].dst: Invalid value: "fd00::/64": is IPv6, and the subnet 10.0.0.0/24 is IPv4`,
				`spec.routes[4].dst: Invalid value: "10.2.0.0": "10.2.0.0" has no prefix length: want a CIDR such as "10.0.0.0/24" or "fd00::/64"`,
				`spec.routes[4].gw: Invalid value: "10.0.1.2": is not within the subnet 10.0.0.0/24 (10.0.0.0-10.0.0.255)`,
			},
			Warnings: []string{`spec.routes[5].dst: "10.3.1.0/16" has host bits set: it means "10.3.0.0/16"`},
		}},
		{"edges", poolSpec(func(s *v2beta1.IPPoolSpec) { s.IPs = []string{"10.0.0.0-10.0.0.255"} }), said{Warnings: []string{
			`spec.ips: 10.0.0.0 is the network address of 10.0.0.0/24: pods with it may not be reached; add it to excludeIPs`,
			`spec.ips: 10.0.0.255 is the broadcast address of 10.0.0.0/24: pods with it may not be reached; add it to excludeIPs`,
		}}},
		{"edges of IPv6", poolWith("a", "fd00::/64", []string{"fd00::-fd00::ffff:ffff:ffff:ffff"}), said{Warnings: []string{
			`spec.ips: fd00:: is the router anycast address of fd00::/64: pods with it may not be reached; add it to excludeIPs`,
		}}},
		{"point to point has no edges", poolWith("a", "10.0.0.0/31", []string{"10.0.0.0-10.0.0.1"}), said{}},
		{"disable and disabled", poolSpec(func(s *v2beta1.IPPoolSpec) { s.Disable, s.Disabled = new(true), new(false) }), said{Errors: []string{
			`spec.disabled: Invalid value: false: contradicts disable: true: want one of the two, or both alike`,
		}}},
		{"old VLAN", poolSpec(func(s *v2beta1.IPPoolSpec) { s.VLAN = new(int64(7)) }), said{Warnings: []string{
			`spec.vlan: has no effect: the VLAN is the network's, vlanID of its SpiderMultusConfig`,
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, saidBy(NewCatalog().Review(tt.pool, nil))); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPoolOf(t *testing.T) {
	t.Parallel()
	pool, review := PoolOf(poolSpec(func(s *v2beta1.IPPoolSpec) {
		s.ExcludeIPs = []string{"10.0.0.12-10.0.0.14"}
		s.Gateway = new("10.0.0.1")
		s.Routes = []v2beta1.Route{{Dst: "10.1.2.3/16", Gw: "10.0.0.2"}}
		s.NodeName = []string{"node1"}
		s.Disabled = new(true)
	}))
	if !review.OK() {
		t.Fatal(review.Errors)
	}
	got := []any{pool.Subnet.String(), FormatRanges(pool.Addresses), Count(pool.Addresses), pool.Gateway.String(), pool.Routes[0].Dst.String(), pool.Affinity.NodeNames, pool.Disabled, pool.Version()}
	want := []any{"10.0.0.0/24", []string{"10.0.0.10-10.0.0.11", "10.0.0.15-10.0.0.20"}, int64(8), "10.0.0.1", "10.1.0.0/16", []string{"node1"}, true, int64(4)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PoolOf (-want +got):\n%s", diff)
	}
}
