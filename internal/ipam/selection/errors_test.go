package selection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod    map[string]string
		change func(*Facts)
		config func(*policy.Config)
		want   []string // parts of the error
	}{
		"none is left": {
			pod:  map[string]string{v2beta1.AnnotationPool: `{"ipv4":["off","node1"]}`},
			want: []string{"pod ai/train: interface net1: annotation ipam.spidernet.io/ippool of the pod: want an IPv4 pool that can serve the pod, and none of these can: off: disabled; node1: node2 is not in nodeName [node1]"},
		},
		"nothing names one": {
			change: func(f *Facts) { f.Interfaces[1].Pools = policy.Pools{} },
			want:   []string{"pod ai/train: interface net1: nothing names a pool for it: want one of the annotations ipam.spidernet.io/ippools and", "default: true"},
		},
		"not listed": {
			pod:  map[string]string{v2beta1.AnnotationPools: `[{"interface":"net2","ipv4":["rail0"]}]`},
			want: []string{"interface net1: annotation ipam.spidernet.io/ippools has no element for it", "in the order eth0, net1"},
		},
		"too few by place": {
			pod:  map[string]string{v2beta1.AnnotationPools: `[{"ipv4":["rail0"]}]`},
			want: []string{"interface net1: annotation ipam.spidernet.io/ippools has no element for it"},
		},
		"grammar": {
			pod:  map[string]string{v2beta1.AnnotationPools: `[{"interface":"net1"}]`},
			want: []string{"interface net1: metadata.annotations[ipam.spidernet.io/ippools][0]", "it names nothing"},
		},
		"grammar of the namespace": {
			change: func(f *Facts) { f.Namespace.Annotations = map[string]string{v2beta1.AnnotationDefaultPoolsV6: "six"} },
			want:   []string{"interface net1: namespace ai: metadata.annotations[ipam.spidernet.io/default-ipv6-ippool]", `want ["name", …]`},
		},
		"bad route": {
			pod:  map[string]string{v2beta1.AnnotationRoutes: `[{"dst":"x","gw":"10.0.0.1"}]`},
			want: []string{"pod ai/train: metadata.annotations[ipam.spidernet.io/routes][0].dst"},
		},
		"family off": {
			pod:    map[string]string{v2beta1.AnnotationPool: `{"ipv6":["six"]}`},
			config: func(c *policy.Config) { c.EnableIPv6 = false },
			want:   []string{"six: of IPv6, which conf.yml has off (enableIPv6: false)"},
		},
		"two addresses of a family": {
			change: func(f *Facts) { f.Interfaces[1].IPs = prefixes("10.0.0.5/24", "10.0.0.6/24") },
			want:   []string{"annotation k8s.v1.cni.cncf.io/networks asks for 10.0.0.5 and 10.0.0.6: want one address of a family"},
		},
		"an address of a family without pools": {
			change: func(f *Facts) { f.Interfaces[1].IPs = prefixes("fd00::5/64") },
			want:   []string{"annotation k8s.v1.cni.cncf.io/networks asks for fd00::5, and network ai/rail0 names no IPv6 pool"},
		},
		"an address that no pool has": {
			change: func(f *Facts) { f.Interfaces[1].IPs = prefixes("10.0.0.250/32") },
			want:   []string{"rail0: it has no 10.0.0.250, which annotation k8s.v1.cni.cncf.io/networks asks for"},
		},
		"a reserved address": {
			change: func(f *Facts) { f.Interfaces[1].IPs = prefixes("10.0.0.50/32") },
			want:   []string{"rail0: 10.0.0.50, which annotation k8s.v1.cni.cncf.io/networks asks for, is reserved by a SpiderReservedIP"},
		},
		"another prefix length": {
			change: func(f *Facts) { f.Interfaces[1].IPs = prefixes("10.0.0.5/16") },
			want:   []string{"rail0: annotation k8s.v1.cni.cncf.io/networks asks for 10.0.0.5/16, and its subnet is 10.0.0.0/24"},
		},
		"another parent": {
			change: func(f *Facts) {
				f.Interfaces[1].Pools.MatchMasterSubnet = true
				f.Interfaces[1].Parent = &Parent{Name: "enp1s0", Addresses: prefixes("192.168.0.7/24", "fe80::1/64")}
			},
			want: []string{"rail0: its subnet 10.0.0.0/24 is not that of enp1s0, which matchMasterSubnet wants: that has 192.168.0.7/24, fe80::1/64"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, f := theCatalog(t), thePod(tt.pod)
			config := policy.DefaultConfig()
			if tt.config != nil {
				tt.config(&config)
			}
			c.SetConfig(config)
			if tt.change != nil {
				tt.change(f)
			}
			_, err := Select(c, f)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q in it", err, part)
				}
			}
		})
	}
}

// TestOneBadInterface: the others are chosen for all the same.
func TestOneBadInterface(t *testing.T) {
	t.Parallel()
	f := thePod(nil)
	for i, pool := range []string{"off", "rail1"} {
		f.Interfaces = append(f.Interfaces, Interface{Name: fmt.Sprintf("net%d", i+2), IPAM: true, Pools: policy.Pools{IPv4: []string{pool}}})
	}
	s, err := Select(theCatalog(t), f)
	if err == nil || !strings.Contains(err.Error(), "interface net2") || strings.Contains(err.Error(), "net1") {
		t.Errorf("error %v, want one of net2 alone", err)
	}
	if diff := cmp.Diff([]string{"net1 IPv4: rail0", "not off: disabled", "net3 IPv4: rail1"}, told(&s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.NICs[0].Err != nil || s.NICs[1].Err == nil || s.NICs[2].Err != nil {
		t.Errorf("errors %v, %v, %v", s.NICs[0].Err, s.NICs[1].Err, s.NICs[2].Err)
	}
}
