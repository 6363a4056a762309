package cluster

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// comparePools compares pools by what they mean.
func comparePools() cmp.Options {
	return cmp.Options{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		cmp.Comparer(func(a, b *netipx.IPSet) bool { return a.Equal(b) }),
		cmp.Comparer(func(a, b labels.Selector) bool {
			return a == nil && b == nil || a != nil && b != nil && a.String() == b.String()
		}),
	}
}

// TestPoolMeaning wants a pool that is made again to mean what the first did.
func TestPoolMeaning(t *testing.T) {
	t.Parallel()
	owner := policy.Application{GroupVersion: "apps/v1", Kind: "StatefulSet", Namespace: "ai", Name: "db", UID: "u"}
	core := policy.Application{GroupVersion: "v1", Kind: "Pod", Namespace: "ai", Name: "alone", UID: "p"}
	now := metav1.Now()
	owned := func(a policy.Application, labels map[string]string) func(*v2beta1.SpiderIPPool) {
		return func(o *v2beta1.SpiderIPPool) { o.Labels, o.Spec.PodAffinity = labels, a.Affinity() }
	}
	withNIC := owner.Labels()
	withNIC[v2beta1.LabelInterface] = "net1"
	for name, test := range map[string]struct {
		spec string
		more func(*v2beta1.SpiderIPPool)
	}{
		"least":       {"{subnet: 10.0.0.0/24}", nil},
		"addresses":   {"{subnet: 10.0.0.77/24, ips: [10.0.0.1-10.0.0.9, 10.0.0.20, 10.0.0.30-10.0.0.40], excludeIPs: [10.0.0.5], gateway: 10.0.0.254, ipVersion: 4, vlan: 3}", nil},
		"IPv6":        {"{subnet: 'fd00::/64', ips: ['fd00::1-fd00::ffff:ffff', 'fd00::2:0:0:1'], gateway: 'fd00::9:0:0:1', routes: [{dst: 'fd01::/48', gw: 'fd00::9:0:0:2'}]}", nil},
		"routes":      {"{subnet: 10.0.0.0/16, routes: [{dst: 10.1.0.0/16, gw: 10.0.0.1}, {dst: 10.2.3.4/32, gw: 10.0.0.2}]}", nil},
		"for names":   {"{subnet: 10.0.0.0/24, namespaceName: [ai, web], nodeName: [n1, n2.example], multusName: [rail0, net/rail1]}", nil},
		"for nodes":   {"{subnet: 10.0.0.0/24, nodeAffinity: {matchExpressions: [{key: zone, operator: In, values: [b, a]}, {key: old, operator: DoesNotExist}]}}", nil},
		"for spaces":  {"{subnet: 10.0.0.0/24, namespaceAffinity: {matchLabels: {team: a}, matchExpressions: [{key: x, operator: NotIn, values: [y]}]}}", nil},
		"for all":     {"{subnet: 10.0.0.0/24, namespaceAffinity: {}, nodeAffinity: {}}", nil},
		"for pods":    {"{subnet: 10.0.0.0/24, podAffinity: {matchLabels: {app: web}, matchExpressions: [{key: gpu, operator: Exists}]}}", nil},
		"by app keys": {"{subnet: 10.0.0.0/24, podAffinity: {matchLabels: {ipam.spidernet.io/app-kind: Deployment}}}", nil},
		"default":     {"{subnet: 10.0.0.0/24, default: true, disable: true}", nil},
		"disabled":    {"{subnet: 10.0.0.0/24, disabled: true}", nil},
		"own":         {"{subnet: 10.0.0.0/24}", owned(owner, owner.Labels())},
		"own rail":    {"{subnet: 10.0.0.0/24}", owned(owner, withNIC)},
		"own by name": {"{subnet: 10.0.0.0/24}", owned(owner, nil)},
		"own, core":   {"{subnet: 10.0.0.0/24}", owned(core, core.Labels())},
		"ending":      {"{subnet: 10.0.0.0/24}", func(o *v2beta1.SpiderIPPool) { o.DeletionTimestamp = &now }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid", Generation: 3, ResourceVersion: "9"}}
			if err := yaml.UnmarshalStrict([]byte(test.spec), &o.Spec); err != nil {
				t.Fatal(err)
			}
			if test.more != nil {
				test.more(o)
			}
			want, review := policy.PoolOf(o)
			if !review.OK() {
				t.Fatal(review.Errors)
			}
			again := poolMeaning(want, ownerLabels(o.Labels))
			got, review := policy.PoolOf(again)
			if !review.OK() {
				t.Errorf("it breaks rules: %v", review.Errors)
			}
			if diff := cmp.Diff(want, got, comparePools()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again.Generation != 0 || again.ResourceVersion != "" {
				t.Error("what is read would be taken for the same")
			}
		})
	}
}
