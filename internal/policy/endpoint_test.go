package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/spiderpool/v2beta1"
)

// endpointWith is a pod of namespace ns with one IPv4 address.
func endpointWith(name, pool, ipv4 string) *v2beta1.SpiderEndpoint {
	e := &v2beta1.SpiderEndpoint{}
	e.Namespace, e.Name = "ns", name
	e.Status.Current.IPs = []v2beta1.EndpointInterface{{Interface: "eth0", IPv4: &ipv4, IPv4Pool: &pool}}
	return e
}

func TestEndpointRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ips  []v2beta1.EndpointInterface
		want []string
	}{
		{"none", nil, nil},
		{"good", []v2beta1.EndpointInterface{
			{Interface: "eth0", IPv4: new("10.0.0.9/24"), IPv6: new("fd00::9/64"), IPv4Pool: new("a"), VLAN: new(int64(4094)), IPv4Gateway: new("10.0.0.1"), MAC: new("0a:1b:0a:00:00:09"), Routes: []v2beta1.Route{{Dst: "0.0.0.0/0", Gw: "10.0.0.1"}}},
			{Interface: "net1", IPv4: new("")},
		}, nil},
		{"one bad among good", []v2beta1.EndpointInterface{
			{Interface: "eth0", IPv4: new("10.0.0.9/24")},
			{Interface: "eth0", IPv4: new("10.0.0.9"), IPv6: new("10.0.0.9/24"), VLAN: new(int64(4095)), IPv4Gateway: new("fd00::1"), IPv6Gateway: new("x"), IPv4Pool: new("A"), MAC: new("0a:1b")},
			{Interface: "net/1", Routes: []v2beta1.Route{{Dst: "10.0.0.0/8", Gw: "fd00::1"}, {Dst: "x", Gw: "y"}}},
			{Interface: "a-name-of-16-char"},
		}, []string{
			`status.current.ips[1].interface: Invalid value: "eth0": item 0 is this interface already: want one item each`,
			`status.current.ips[1].ipv4: Invalid value: "10.0.0.9": want an IPv4 address with its prefix length, such as "10.0.0.9/24" or "fd00::9/64"`,
			`status.current.ips[1].ipv6: Invalid value: "10.0.0.9/24": is IPv4: want an IPv6 address here`,
			`status.current.ips[1].ipv4Gateway: Invalid value: "fd00::1": is IPv6: want an IPv4 address here`,
			`status.current.ips[1].ipv6Gateway: Invalid value: "x": "x" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
			`status.current.ips[1].ipv4Pool: Invalid value: "A": want the name of a SpiderIPPool: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`status.current.ips[1].vlan: Invalid value: 4095: want a VLAN ID from 0 (none) to 4094`,
			`status.current.ips[1].mac: Invalid value: "0a:1b": want a MAC address such as "0a:1b:0a:00:00:09"`,
			`status.current.ips[2].interface: Invalid value: "net/1": want the name of an interface: 1 to 15 characters without "/", ":" and spaces, and not "." or ".."`,
			`status.current.ips[2].routes[0].gw: Invalid value: "fd00::1": is IPv6, and the destination 10.0.0.0/8 is IPv4`,
			`status.current.ips[2].routes[1].dst: Invalid value: "x": "x" has no prefix length: want a CIDR such as "10.0.0.0/24" or "fd00::/64"`,
			`status.current.ips[2].routes[1].gw: Invalid value: "y": "y" is no IP address: want one such as "10.0.0.9" or "fd00::9"`,
			`status.current.ips[3].interface: Invalid value: "a-name-of-16-char": want the name of an interface: 1 to 15 characters without "/", ":" and spaces, and not "." or ".."`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			obj := &v2beta1.SpiderEndpoint{}
			obj.Status.Current.IPs = tt.ips
			if diff := cmp.Diff(tt.want, saidBy(NewCatalog().Review(obj, nil)).Errors); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}
