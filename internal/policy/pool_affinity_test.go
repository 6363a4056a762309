package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/api/spiderpool/v2beta1"
)

func TestAffinityRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*v2beta1.IPPoolSpec)
		want   said
	}{
		{"empty selectors", func(s *v2beta1.IPPoolSpec) {
			s.PodAffinity, s.NamespaceAffinity, s.NodeAffinity = &metav1.LabelSelector{}, &metav1.LabelSelector{}, &metav1.LabelSelector{}
		}, said{Errors: []string{
			`spec.podAffinity: Required value: an empty selector selects everything: want matchLabels or matchExpressions, or leave it out`,
		}, Warnings: []string{
			`spec.namespaceAffinity: is empty and selects everything: want matchLabels or matchExpressions, or leave it out`,
			`spec.nodeAffinity: is empty and selects everything: want matchLabels or matchExpressions, or leave it out`,
		}}},
		{"unknown operator", func(s *v2beta1.IPPoolSpec) {
			s.NodeAffinity = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Near", Values: []string{"a"}}}}
		}, said{Errors: []string{
			`spec.nodeAffinity.matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist"`,
		}}},
		{"operator without values", func(s *v2beta1.IPPoolSpec) {
			s.PodAffinity = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "In"}}}
		}, said{Errors: []string{
			"spec.podAffinity.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
		}}},
		{"names", func(s *v2beta1.IPPoolSpec) {
			s.NamespaceName = []string{"ok", "Not"}
			s.NodeName = []string{"node.example", "a/b"}
			s.MultusName = []string{"net", "ns/net", "ns/a/b", ""}
		}, said{Errors: []string{
			`spec.namespaceName[1]: Invalid value: "Not": want the name of a namespace: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`spec.nodeName[1]: Invalid value: "a/b": want the name of a node: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`spec.multusName[2]: Invalid value: "ns/a/b": want the name of a network, or "namespace/name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`spec.multusName[3]: Invalid value: "": want the name of a network, or "namespace/name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		}}},
		{"names beside selectors", func(s *v2beta1.IPPoolSpec) {
			s.NamespaceName, s.NodeName = []string{"a", "a"}, []string{"n"}
			s.NamespaceAffinity = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			s.NodeAffinity = s.NamespaceAffinity
		}, said{Warnings: []string{
			`spec.namespaceName[1]: "a" is listed twice`,
			`spec.namespaceAffinity: has no effect beside namespaceName, which counts instead`,
			`spec.nodeAffinity: has no effect beside nodeName, which counts instead`,
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, saidBy(NewCatalog().Review(poolSpec(tt.change), nil))); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	app := Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "web", UID: "u"}
	core := Application{GroupVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "web", UID: "u"}
	named := app
	named.UID = ""
	other := app
	other.Name = "db"
	owned := func(labels map[string]string, affinity *metav1.LabelSelector) *v2beta1.SpiderIPPool {
		return poolWith("a", "10.0.0.0/24", nil, func(p *v2beta1.SpiderIPPool) { p.Labels, p.Spec.PodAffinity = labels, affinity })
	}
	with := func(key, value string) *metav1.LabelSelector {
		s := app.Affinity()
		s.MatchLabels[key] = value
		return s
	}
	withExpression := app.Affinity()
	withExpression.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Exists"}}
	for _, tt := range []struct {
		name string
		pool *v2beta1.SpiderIPPool
		want *Application
		said said
	}{
		{"nobody's", owned(nil, nil), nil, said{}},
		{"an application's", owned(app.Labels(), app.Affinity()), &app, said{}},
		{"of the core group", owned(core.Labels(), core.Affinity()), &core, said{}},
		{"by affinity alone", owned(nil, app.Affinity()), &named, said{}},
		{"without affinity", owned(app.Labels(), nil), &app, said{Errors: []string{
			`spec.podAffinity: Required value: the labels say that the pool is Deployment ns/web (apps/v1)'s own: ` + wantAffinity,
		}}},
		{"labels of pods", owned(app.Labels(), with("app", "web")), &app, said{Errors: []string{
			`spec.podAffinity.matchLabels[app]: Forbidden: is no key of an application's own pool: ` + wantAffinity,
		}}},
		{"an expression", owned(app.Labels(), withExpression), &app, said{Errors: []string{
			`spec.podAffinity.matchExpressions: Forbidden: an application's own pool has none: ` + wantAffinity,
		}}},
		{"another in labels", owned(other.Labels(), app.Affinity()), &other, said{Errors: []string{
			`spec.podAffinity: Invalid value: "Deployment ns/web (apps/v1)": the labels say that the pool is Deployment ns/db (apps/v1)'s own: want the same application in both`,
		}}},
		{"half an affinity", owned(nil, &metav1.LabelSelector{MatchLabels: map[string]string{v2beta1.AffinityAppKind: "Deployment", v2beta1.AffinityAppName: "web", v2beta1.AffinityAppGroup: "apps"}}), nil, said{Warnings: []string{
			`spec.podAffinity: selects pods by their labels, and names no application: for that ` + wantAffinity,
		}}},
		{"half an affinity of one by labels", owned(app.Labels(), &metav1.LabelSelector{MatchLabels: map[string]string{v2beta1.AffinityAppKind: "Deployment", v2beta1.AffinityAppName: "web", v2beta1.AffinityAppGroup: "apps"}}), &app, said{Errors: []string{
			`spec.podAffinity.matchLabels[ipam.spidernet.io/app-api-version]: Required value: names the application whose own pool it is: ` + wantAffinity,
			`spec.podAffinity.matchLabels[ipam.spidernet.io/app-namespace]: Required value: names the application whose own pool it is: ` + wantAffinity,
		}}},
		{
			"half the labels", owned(map[string]string{v2beta1.LabelOwnerKind: "Deployment", v2beta1.LabelOwnerName: "web", v2beta1.LabelOwnerUID: "u", v2beta1.LabelOwnerGroupVersion: "apps_v1"}, app.Affinity()),
			&Application{GroupVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u"},
			said{Errors: []string{
				`metadata.labels[ipam.spidernet.io/owner-application-namespace]: Required value: an application's own pool has all labels ipam.spidernet.io/owner-application-{gv,kind,namespace,name,uid}`,
			}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pool, review := PoolOf(tt.pool)
			if diff := cmp.Diff(tt.want, pool.Owner); diff != "" {
				t.Errorf("owner (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.said, saidBy(review)); diff != "" {
				t.Errorf("review (-want +got):\n%s", diff)
			}
		})
	}
}
