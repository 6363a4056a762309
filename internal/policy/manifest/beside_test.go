package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestBeside holds which errors of rules follow from what could not be decoded.
func TestBeside(t *testing.T) {
	t.Parallel()
	const pool = "apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\nmetadata: {name: a}\n"
	const network = "apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderMultusConfig\nmetadata: {name: a}\n"
	for _, tt := range []struct {
		name, doc   string
		rules, want []string // paths
	}{
		{"nothing before", pool + "spec: {subnet: a}", []string{"spec.subnet", "spec"}, []string{"spec.subnet", "spec"}},
		{"equal", pool + "spec: {ips: a}", []string{"spec.ips", "spec.subnet"}, []string{"spec.ips", "spec.subnet"}},
		{"below", pool + "spec: {ips: a}", []string{"spec.ips[0]"}, []string{"spec.ips"}},
		{"above", pool + "spec: {podAffinity: {app: a}}", []string{"spec.podAffinity"}, []string{"spec.podAffinity.app"}},
		{"begins alike", pool + "spec: {ips: a}", []string{"spec.ipsOther"}, []string{"spec.ips", "spec.ipsOther"}},
		{"renamed", pool + "spec: {routes: [{gateway: a}]}", []string{"spec.routes[0].gw", "spec.routes[1].gw"}, []string{"spec.routes[0].gateway", "spec.routes[1].gw"}},
		{"misspelt", network + "spec: {ibSriov: {}}", []string{"spec.ibsriov", "spec.sriov"}, []string{"spec.ibSriov", "spec.sriov"}},
		{"below misspelt", network + "spec: {macvaln: {}}", []string{"spec.macvlan.master"}, []string{"spec.macvaln"}},
		{"belongs below", pool + "subnet: a", []string{"spec.subnet", "spec.ips"}, []string{"subnet", "spec.ips"}},
		{"block of what belongs below", network + "spec: {cniType: macvlan, ippools: {}}", []string{"spec.macvlan", "spec.macvlan.ippools"}, []string{"spec.ippools", "spec.macvlan"}},
		{"belongs above", pool + "spec: {routes: [{subnet: a}]}", []string{"spec.subnet"}, []string{"spec.routes[0].subnet"}},
		{
			"order", pool + "spec: {ips: [a, b, 1, d, e, f, g, h, i, j, 2], gatway: a}\nstatus: 1\nother: 1", nil,
			[]string{"other", "spec.gatway", "spec.ips[2]", "spec.ips[10]", "status"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, decode, err := Decode([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			var rules field.ErrorList
			for _, path := range tt.rules {
				rules = append(rules, &field.Error{Type: field.ErrorTypeInvalid, Field: path})
			}
			var got []string
			for _, e := range Beside(decode, rules) {
				got = append(got, e.Field)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarningsBeside(t *testing.T) {
	t.Parallel()
	_, decode, err := Decode([]byte("apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\nspec: {ip: [a], vlan: x}"))
	if err != nil || len(decode) != 2 {
		t.Fatal(err, decode)
	}
	warnings := []string{"spec.ips: is empty", "spec.ips", "spec.vlan: is no number", "spec.gateway: is missing: want one", "says no path"}
	want := []string{"spec.ips", "spec.gateway: is missing: want one", "says no path"}
	if diff := cmp.Diff(want, WarningsBeside(decode, warnings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(warnings, WarningsBeside(nil, warnings)); diff != "" {
		t.Errorf("beside nothing (-want +got):\n%s", diff)
	}
}

func TestComparePaths(t *testing.T) {
	t.Parallel()
	want := []string{"a", "a.b", "a[1]", "a[1].b", "a[9].b", "a[10].a", "a[12]", "ab", "b"}
	got := slices.Clone(want)
	slices.SortFunc(got, func(a, b string) int { return -strings.Compare(a, b) })
	slices.SortFunc(got, comparePaths)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
