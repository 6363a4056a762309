package selection

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// pools has a catalog know pools: YAML of their specs by name.
func pools(tb testing.TB, c *policy.Catalog, specs map[string]string) {
	tb.Helper()
	for name, spec := range specs {
		p := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
			tb.Fatalf("pool %s: %v", name, err)
		}
		if _, review := policy.PoolOf(p); !review.OK() {
			tb.Fatalf("pool %s: %v", name, review.Errors)
		}
		c.Put(p)
	}
}

// theCatalog has pools of two rails and of both families.
func theCatalog(tb testing.TB) *policy.Catalog {
	tb.Helper()
	c := policy.NewCatalog()
	pools(tb, c, map[string]string{
		"rail0":    "{subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.100], gateway: 10.0.0.254}",
		"rail0-b":  "{subnet: 10.0.0.0/24, ips: [10.0.0.101-10.0.0.200]}",
		"rail1":    "{subnet: 10.1.0.0/24, ips: [10.1.0.1-10.1.0.100]}",
		"six":      "{subnet: fd00::/64, ips: ['fd00::1-fd00::ffff']}",
		"off":      "{subnet: 10.2.0.0/24, ips: [10.2.0.1], disable: true}",
		"node1":    "{subnet: 10.3.0.0/24, ips: [10.3.0.1], nodeName: [node1]}",
		"gpu":      "{subnet: 10.4.0.0/24, ips: [10.4.0.1], nodeAffinity: {matchLabels: {gpu: h100}}}",
		"ml":       "{subnet: 10.5.0.0/24, ips: [10.5.0.1], namespaceName: [ml]}",
		"team":     "{subnet: 10.6.0.0/24, ips: [10.6.0.1], namespaceAffinity: {matchLabels: {team: b}}}",
		"app":      "{subnet: 10.7.0.0/24, ips: [10.7.0.1], podAffinity: {matchLabels: {app: a}}}",
		"net":      "{subnet: 10.8.0.0/24, ips: [10.8.0.1], multusName: [ai/rail1]}",
		"bare":     "{subnet: 10.9.0.0/24, ips: [10.9.0.1], multusName: [rail0]}",
		"empty":    "{subnet: 10.10.0.0/24}",
		"reserved": "{subnet: 10.11.0.0/24, ips: [10.11.0.1-10.11.0.9]}",
	})
	c.Put(&v2beta1.SpiderReservedIP{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: v2beta1.ReservedIPSpec{IPs: []string{"10.11.0.0-10.11.0.20", "10.0.0.50"}}})
	return c
}

// thePod is on node2 with eth0 of the cluster and a rail.
func thePod(annotations map[string]string) *Facts {
	return &Facts{
		Pod:       metav1.ObjectMeta{Namespace: "ai", Name: "train", Labels: map[string]string{"app": "b"}, Annotations: annotations},
		Namespace: metav1.ObjectMeta{Name: "ai", Labels: map[string]string{"team": "a"}},
		Node:      metav1.ObjectMeta{Name: "node2", Labels: map[string]string{"gpu": "a100"}},
		Interfaces: []Interface{
			{Name: "eth0"},
			{Name: "net1", IPAM: true, Network: types.NamespacedName{Namespace: "ai", Name: "rail0"}, Pools: policy.Pools{IPv4: []string{"rail0"}}},
		},
	}
}

// told is a selection in lines: candidates and what was passed over.
func told(s *Selection) []string {
	var lines []string
	for _, n := range s.NICs {
		for _, f := range n.Families {
			words := []string{fmt.Sprintf("%s IPv%d:", n.Interface, f.Version)}
			for _, p := range f.Pools {
				words = append(words, p.Name)
			}
			if f.Exact.IsValid() {
				words = append(words, "exactly", f.Exact.String())
			}
			lines = append(lines, strings.Join(words, " "))
		}
		for _, c := range n.Considered {
			if c.Why != "" {
				lines = append(lines, "not "+c.Pool+": "+c.Why)
			}
		}
	}
	return lines
}

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}
