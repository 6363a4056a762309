package selection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

func TestSources(t *testing.T) {
	t.Parallel()
	const (
		pools    = v2beta1.AnnotationPools
		pool     = v2beta1.AnnotationPool
		nsPools  = v2beta1.AnnotationDefaultPoolsV4
		nsPools6 = v2beta1.AnnotationDefaultPoolsV6
	)
	for name, tt := range map[string]struct {
		pod       map[string]string
		namespace map[string]string
		change    func(*Facts)
		want      []string
		from      string
	}{
		"network": {want: []string{"net1 IPv4: rail0"}, from: "network ai/rail0"},
		"namespace before network": {
			namespace: map[string]string{nsPools: `["rail1"]`}, want: []string{"net1 IPv4: rail1"},
			from: "namespace ai by ipam.spidernet.io/default-ipv4-ippool",
		},
		"namespace, both families": {
			namespace: map[string]string{nsPools: `["rail1"]`, nsPools6: `["six"]`}, want: []string{"net1 IPv4: rail1", "net1 IPv6: six"},
			from: "namespace ai by ipam.spidernet.io/default-ipv4-ippool and ipam.spidernet.io/default-ipv6-ippool",
		},
		"one family of the namespace, none of the network": {
			namespace: map[string]string{nsPools6: `["six"]`}, want: []string{"net1 IPv6: six"},
			from: "namespace ai by ipam.spidernet.io/default-ipv6-ippool",
		},
		"pod before namespace": {
			pod: map[string]string{pool: `{"ipv4":["rail0-b"]}`}, namespace: map[string]string{nsPools: `["rail1"]`},
			want: []string{"net1 IPv4: rail0-b"}, from: "annotation ipam.spidernet.io/ippool of the pod",
		},
		"several before one": {
			pod:  map[string]string{pool: `{"ipv4":["rail0-b"]}`, pools: `[{"interface":"net1","ipv4":["rail1"],"ipv6":["six"]}]`},
			want: []string{"net1 IPv4: rail1", "net1 IPv6: six"}, from: "annotation ipam.spidernet.io/ippools of the pod",
		},
		"by place": {
			pod:  map[string]string{pools: `[{"ipv4":["rail0"]},{"ipv4":["rail1"]}]`},
			want: []string{"net1 IPv4: rail1"}, from: "annotation ipam.spidernet.io/ippools of the pod",
		},
		"a name of its own, by place": {
			pod: map[string]string{pools: `[{"ipv4":["rail0"]},{"ipv4":["rail1"]}]`}, change: func(f *Facts) { f.Interfaces[1].Name = "rdma0" },
			want: []string{"rdma0 IPv4: rail1"}, from: "annotation ipam.spidernet.io/ippools of the pod",
		},
		"the order that is listed": {
			pod:  map[string]string{pool: `{"ipv4":["rail1","rail0-b","rail0","rail1"]}`},
			want: []string{"net1 IPv4: rail1 rail0-b rail0"}, from: "annotation ipam.spidernet.io/ippool of the pod",
		},
		"wildcards": {
			pod:  map[string]string{pool: `{"ipv4":["rail1","rail*","nothing-?"]}`},
			want: []string{"net1 IPv4: rail1 rail0 rail0-b", "not nothing-?: no pool of this family has a name that it matches"},
			from: "annotation ipam.spidernet.io/ippool of the pod",
		},
		"a wildcard that matches pools of the other family": {
			pod:  map[string]string{pool: `{"ipv4":["s*","rail1"]}`},
			want: []string{"net1 IPv4: rail1", "not s*: no pool of this family has a name that it matches"},
			from: "annotation ipam.spidernet.io/ippool of the pod",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := thePod(tt.pod)
			f.Namespace.Annotations = tt.namespace
			if tt.change != nil {
				tt.change(f)
			}
			s, err := Select(theCatalog(t), f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, told(&s)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if from := s.NICs[0].Considered[0].From; from != tt.from {
				t.Errorf("from %q, want %q", from, tt.from)
			}
		})
	}
}

func TestDefaultPools(t *testing.T) {
	t.Parallel()
	c := policy.NewCatalog()
	pools(t, c, map[string]string{
		"a":     "{subnet: 10.0.0.0/24, ips: [10.0.0.1], default: true}",
		"b":     "{subnet: 10.1.0.0/24, ips: [10.1.0.1], default: true, multusName: [ai/rail0]}",
		"c":     "{subnet: 10.2.0.0/24, ips: [10.2.0.1], default: true, nodeName: [node2], nodeAffinity: {matchLabels: {x: y}}}",
		"d":     "{subnet: 10.3.0.0/24, ips: [10.3.0.1], default: true, podAffinity: {matchLabels: {app: b}}}",
		"e":     "{subnet: 10.4.0.0/24, ips: [10.4.0.1], default: true, namespaceName: [ai]}",
		"f":     "{subnet: 10.5.0.0/24, ips: [10.5.0.1], default: true, nodeAffinity: {matchLabels: {gpu: a100}}}",
		"g":     "{subnet: 10.6.0.0/24, ips: [10.6.0.1], default: true, namespaceAffinity: {matchLabels: {team: a}}}",
		"h":     "{subnet: 10.7.0.0/24, ips: [10.7.0.1], default: true, namespaceName: [ai], multusName: [rail0]}",
		"i":     "{subnet: 10.9.0.0/24, ips: [10.9.0.1], default: true, nodeName: [node2], namespaceName: [ai]}",
		"other": "{subnet: 10.8.0.0/24, ips: [10.8.0.1]}",
	})
	f := thePod(nil)
	f.Interfaces[1].Pools = policy.Pools{}
	s, err := Select(c, f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"net1 IPv4: d i c f h e g b a"}, told(&s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c.Remove(&v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if s, err = Select(c, f); err != nil || strings.Contains(told(&s)[0], "a") {
		t.Errorf("without a: %q, %v", told(&s), err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	f := thePod(map[string]string{v2beta1.AnnotationPools: `[{"interface":"eth0","ipv4":["rail0"]},{"interface":"net7","ipv4":["rail0"]},{"interface":"net1","ipv4":["rail0"]}]`})
	s, err := Select(theCatalog(t), f)
	want := []string{
		"metadata.annotations[ipam.spidernet.io/ippools][0] has no effect: the addresses of eth0 are not of a SpiderIPPool",
		"metadata.annotations[ipam.spidernet.io/ippools][1] has no effect: the pod has the interfaces eth0, net1",
	}
	if diff := cmp.Diff(want, s.Warnings); diff != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}

// TestTwoInterfacesOfOnePool: both have it first; two addresses of it are the
// holder's to give, and its exhaustion leaves the pools after it as they are.
func TestTwoInterfacesOfOnePool(t *testing.T) {
	t.Parallel()
	f := thePod(map[string]string{v2beta1.AnnotationPool: `{"ipv4":["rail0","rail1"]}`})
	f.Interfaces = append(f.Interfaces, Interface{Name: "net2", IPAM: true})
	s, err := Select(theCatalog(t), f)
	if diff := cmp.Diff([]string{"net1 IPv4: rail0 rail1", "net2 IPv4: rail0 rail1"}, told(&s)); diff != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}
}
