package policy

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/versus"
)

// rail is a network with an inject annotation on a block.
func rail(tb testing.TB, namespace, name, values, spec string) *v2beta1.SpiderMultusConfig {
	tb.Helper()
	return networkFrom(tb, fmt.Sprintf(`
metadata: {namespace: %s, name: %s, annotations: {cni.spidernet.io/rdma-resource-inject: %q}}
spec: {%s}`, namespace, name, values, spec))
}

func macvlanOn(master string) string {
	return `cniType: macvlan, macvlan: {master: [` + master + `], rdmaResourceName: a.io/` + master + `, ippools: {ipv4: ["*"]}}`
}

func namesOf(networks []Network) (names []string) {
	for _, n := range networks {
		names = append(names, n.Namespace+"/"+n.Name)
	}
	return names
}

func TestNetworksFor(t *testing.T) {
	c := NewCatalog()
	bonded := rail(t, "b", "bonded", "x", `cniType: macvlan, macvlan: {master: [z1, z2], bond: {name: c-bond, mode: 1}, rdmaResourceName: a.io/z, ippools: {ipv4: ["*"]}}`)
	second := rail(t, "b", "two", "x, y", macvlanOn("eth1"))
	for _, obj := range []*v2beta1.SpiderMultusConfig{
		rail(t, "b", "one", "x", macvlanOn("eth1")),
		second,
		rail(t, "a", "three", "y,x,y", macvlanOn("eth1")),
		rail(t, "a", "four", "x", macvlanOn("eth0")),
		bonded,
		rail(t, "a", "vf", "x", `cniType: sriov, sriov: {resourceName: d.io/vf, ippools: {ipv4: ["*"]}}`),
		rail(t, "a", "broken", "x", `cniType: macvlan`),
		rail(t, "a", "else", "z", macvlanOn("eth0")),
		networkFrom(t, "metadata: {namespace: a, name: plain}\nspec: {cniType: ipoib, ipoib: {master: ib0}}"),
	} {
		c.Put(obj)
	}
	want := func(value string, names ...string) {
		t.Helper()
		if diff := cmp.Diff(names, namesOf(c.NetworksFor(v2beta1.AnnotationInjectRDMA, value))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", value, diff)
		}
	}
	want("x", "a/broken", "b/bonded", "a/vf", "a/four", "a/three", "b/one", "b/two")
	want("y", "a/three", "b/two")
	want("absent")
	if got := c.NetworksFor(v2beta1.AnnotationInjectNetwork, "x"); got != nil {
		t.Errorf("by the other key: %q", namesOf(got))
	}

	broken := []string{
		"metadata.annotations[cni.spidernet.io/rdma-resource-inject]: Forbidden: networks of cniType ovs cannot be injected: want macvlan, ipvlan, vlan, sriov, ib-sriov, ipoib",
		"spec.macvlan: Required value: cniType is macvlan and wants this block",
		"",
	}
	if diff := cmp.Diff([]string{"x", "y", "z"}, c.InjectedValues(v2beta1.AnnotationInjectRDMA)); diff != "" {
		t.Errorf("values: -want +got:\n%s", diff)
	}
	if got := c.InjectedValues(v2beta1.AnnotationInjectNetwork); got != nil {
		t.Errorf("values of the other key: %q", got)
	}
	c.Put(rail(t, "a", "bridge", "x", `cniType: ovs, ovs: {bridge: br1}`))
	for i, n := range c.NetworksFor(v2beta1.AnnotationInjectRDMA, "x")[:3] {
		if diff := cmp.Diff(broken[i], n.Broken); diff != "" {
			t.Errorf("%s: -want +got:\n%s", n.Name, diff)
		}
	}
	c.Remove(rail(t, "a", "bridge", "x", ""))

	before := c.NetworksFor(v2beta1.AnnotationInjectRDMA, "x")
	kept := namesOf(before)
	second.Annotations[v2beta1.AnnotationInjectRDMA] = "y"
	c.Put(second)
	c.Remove(bonded)
	want("x", "a/broken", "a/vf", "a/four", "a/three", "b/one")
	want("y", "a/three", "b/two")
	if diff := cmp.Diff(kept, namesOf(before)); diff != "" {
		t.Errorf("an answer changed afterwards:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a/else", "a/four", "a/plain", "a/three", "a/vf", "b/one", "b/two"}, namesOf(c.Networks())); diff != "" {
		t.Errorf("all: -want +got:\n%s", diff)
	}
	if _, ok := c.Network("a", "broken"); ok {
		t.Error("a broken network is answered")
	}
	if _, ok := c.Network("b", "bonded"); ok {
		t.Error("a removed network is answered")
	}
}

func TestPutNetworkOnce(t *testing.T) {
	c := NewCatalog()
	obj := networkFrom(t, "metadata: {uid: u, resourceVersion: \"1\"}\nspec: {cniType: ipoib, ipoib: {master: ib0}}")
	master := func() string {
		n, _ := c.Network("spiderpool", "rail")
		return n.Masters[0]
	}
	c.Put(obj)
	obj.Spec.IPoIB.Master = "ib1"
	if c.Put(obj); master() != "ib0" {
		t.Error("the state that was known was parsed again")
	}
	obj.ResourceVersion = "2"
	if c.Put(obj); master() != "ib1" {
		t.Error("a new state was not parsed")
	}
	obj.UID, obj.Spec.IPoIB.Master = "v", "ib2"
	if c.Put(obj); master() != "ib2" {
		t.Error("a new object was not parsed")
	}
	if len(c.Networks()) != 1 {
		t.Errorf("%d networks", len(c.Networks()))
	}
}

// fleet has so many networks, eight rails a value.
func fleet(tb testing.TB, count int) *Catalog {
	tb.Helper()
	c := NewCatalog()
	for i := range count {
		obj := rail(tb, "spiderpool", "rail-"+strconv.Itoa(i), "group-"+strconv.Itoa(i/8), macvlanOn("eth"+strconv.Itoa(i%8)))
		obj.UID = types.UID(strconv.Itoa(i))
		c.Put(obj)
	}
	return c
}

// BenchmarkNetworksFor holds the index against walking all networks, 200 of
// them.
func BenchmarkNetworksFor(b *testing.B) {
	c := fleet(b, 200)
	enough := func(networks []Network) error {
		if len(networks) != 8 {
			return fmt.Errorf("%d networks", len(networks))
		}
		return nil
	}
	versus.Peer(b, func() error {
		return enough(c.NetworksFor(v2beta1.AnnotationInjectRDMA, "group-17"))
	}, func() error {
		var found []Network
		for _, n := range c.Networks() {
			if slices.Contains(n.Inject[v2beta1.AnnotationInjectRDMA], "group-17") {
				found = append(found, n)
			}
		}
		slices.SortFunc(found, byParent)
		return enough(found)
	})
}

// BenchmarkReviewNetwork is one admission beside 200 networks.
func BenchmarkReviewNetwork(b *testing.B) {
	c := fleet(b, 200)
	obj := rail(b, "spiderpool", "new", "group-17", macvlanOn("eth8"))
	b.ReportAllocs()
	for b.Loop() {
		c.Default(obj)
		if r := c.Review(obj, nil); !r.OK() {
			b.Fatal(texts(r))
		}
	}
}
