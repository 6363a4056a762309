package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"railhead/api/spiderpool/v2beta1"
)

// networkFrom is a SpiderMultusConfig from YAML that leaves out what all have in common.
func networkFrom(tb testing.TB, text string) *v2beta1.SpiderMultusConfig {
	tb.Helper()
	obj := &v2beta1.SpiderMultusConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "spiderpool", Name: "rail"}}
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return obj
}

// texts is a Review in lines.
func texts(r Review) (lines []string) {
	for _, e := range r.Errors {
		lines = append(lines, "refused: "+e.Error())
	}
	for _, w := range r.Warnings {
		lines = append(lines, "warning: "+w)
	}
	return lines
}

// admit is what admission does: defaults, then rules.
func admit(c *Catalog, obj, old metav1.Object) []string {
	r := c.Default(obj)
	r.add(c.Review(obj, old))
	return texts(r)
}

func TestNetworkRules(t *testing.T) {
	for _, tc := range networkCases {
		t.Run(tc.name, func(t *testing.T) {
			got := admit(NewCatalog(), networkFrom(t, tc.yaml), nil)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

const catalogPools = `[
  {"metadata": {"name": "v4-81"}, "spec": {"subnet": "172.81.0.0/16"}},
  {"metadata": {"name": "v6-81"}, "spec": {"subnet": "fd00:81::/64"}}
]`

func catalogWithPools(tb testing.TB) *Catalog {
	tb.Helper()
	var pools []*v2beta1.SpiderIPPool
	if err := yaml.Unmarshal([]byte(catalogPools), &pools); err != nil {
		tb.Fatal(err)
	}
	c := NewCatalog()
	for _, p := range pools {
		c.Put(p)
	}
	return c
}

func TestNetworkPools(t *testing.T) {
	c := catalogWithPools(t)
	got := admit(c, networkFrom(t, `
spec:
  cniType: macvlan
  macvlan: {master: [a], ippools: {ipv4: [v4-81, "v4-*", gone, v6-81], ipv6: [v6-81, v4-81]}}
`), nil)
	want := []string{
		`warning: spec.macvlan.ippools.ipv4[2]: there is no SpiderIPPool "gone": pods get no address of it until there is`,
		`warning: spec.macvlan.ippools.ipv4[3]: SpiderIPPool "v6-81" has fd00:81::/64, which is not ipv4`,
		`warning: spec.macvlan.ippools.ipv6[1]: SpiderIPPool "v4-81" has 172.81.0.0/16, which is not ipv6`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNetworkNADName(t *testing.T) {
	const spec = "\nspec: {cniType: macvlan, macvlan: {master: [a]}}"
	first := networkFrom(t, "metadata: {name: first, uid: u1, creationTimestamp: 2026-01-01T00:00:00Z}"+spec)
	named := networkFrom(t, "metadata: {name: named, uid: u2, creationTimestamp: 2026-01-02T00:00:00Z, annotations: {multus.spidernet.io/cr-name: first}}"+spec)
	elsewhere := networkFrom(t, "metadata: {name: first, namespace: other}"+spec)
	broken := networkFrom(t, "metadata: {name: broken, annotations: {multus.spidernet.io/cr-name: taken}}\nspec: {cniType: macvlan}")

	c := NewCatalog()
	c.Put(first)
	taken := []string{`refused: metadata.annotations[multus.spidernet.io/cr-name]: Duplicate value: "first": SpiderMultusConfig spiderpool/first makes the NetworkAttachmentDefinition of this name already`}
	if diff := cmp.Diff(taken, admit(c, named.DeepCopy(), nil)); diff != "" {
		t.Errorf("a name that is taken: -want +got:\n%s", diff)
	}
	if got := admit(c, first.DeepCopy(), nil); got != nil {
		t.Errorf("an object conflicts with itself: %q", got)
	}
	if got := admit(c, elsewhere, nil); got != nil {
		t.Errorf("conflicts with another namespace: %q", got)
	}

	// Two replicas admitted both at the same time: the later one is refused, and only it.
	c.Put(named)
	if diff := cmp.Diff(taken, texts(c.Review(named, nil))); diff != "" {
		t.Errorf("the later of two: -want +got:\n%s", diff)
	}
	if got := texts(c.Review(first, nil)); got != nil {
		t.Errorf("the earlier of two: %q", got)
	}
	c.Remove(first)
	if got := texts(c.Review(named, nil)); got != nil {
		t.Errorf("after the other went: %q", got)
	}

	// One that is broken wants its name too.
	c.Put(broken)
	want := []string{`refused: metadata.name: Duplicate value: "taken": SpiderMultusConfig spiderpool/broken makes the NetworkAttachmentDefinition of this name already`}
	if diff := cmp.Diff(want, admit(c, networkFrom(t, "metadata: {name: taken}"+spec), nil)); diff != "" {
		t.Errorf("a name that a broken one wants: -want +got:\n%s", diff)
	}
}

func TestNetworkChange(t *testing.T) {
	const spec = "\nspec: {cniType: macvlan, macvlan: {master: [a]}}"
	const broken = "\nspec: {cniType: macvlan}"
	none := "metadata: {resourceVersion: \"1\"}"
	named := "metadata: {annotations: {multus.spidernet.io/cr-name: x}}"
	renamed := func(from, to string) []string {
		return []string{`refused: metadata.annotations[multus.spidernet.io/cr-name]: Forbidden: NetworkAttachmentDefinition ` + from + ` cannot be renamed to "` + to + `": want a new SpiderMultusConfig`}
	}
	for _, tc := range []struct {
		name, old, now string
		want           []string
	}{
		{"nothing", none + spec, none + spec, nil},
		{"name added", none + spec, named + spec, renamed("rail", "x")},
		{"name changed", named + spec, "metadata: {annotations: {multus.spidernet.io/cr-name: \"y\"}}" + spec, renamed("x", "y")},
		{"name removed", named + spec, none + spec, renamed("x", "rail")},
		{"name kept", named + spec, named + "\nspec: {cniType: macvlan, macvlan: {master: [b]}}", nil},
		{"own name added", none + spec, "metadata: {annotations: {multus.spidernet.io/cr-name: rail}}" + spec, nil},
		{"type", none + spec, none + "\nspec: {cniType: ipoib, ipoib: {master: ib0}}", nil},
		{"label of a broken one", none + broken, "metadata: {labels: {a: b}}" + broken, nil},
		{"annotation of a broken one", none + broken, "metadata: {annotations: {a: b}}" + broken, []string{
			"refused: spec.macvlan: Required value: cniType is macvlan and wants this block",
		}},
		{"finalizer of a broken one that goes", none + broken, "metadata: {deletionTimestamp: 2026-01-01T00:00:00Z, annotations: {a: b}}" + broken, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, now := networkFrom(t, tc.old), networkFrom(t, tc.now)
			c := NewCatalog()
			c.Put(old)
			c.Default(old)
			if diff := cmp.Diff(tc.want, admit(c, now, old)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
