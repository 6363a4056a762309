package injection

import (
	"testing"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

func TestMissingOfBroken(t *testing.T) {
	n := policy.Network{
		Type: v2beta1.CNIMacvlan, Resource: "a.io/b", Pools: policy.Pools{IPv4: []string{"v4"}},
		Broken: "spec.macvlan.mtu: Invalid value: 1",
	}
	want := "breaks rules: spec.macvlan.mtu: Invalid value: 1"
	if got := missing(v2beta1.AnnotationInjectRDMA, n); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
