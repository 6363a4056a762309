package driver

import (
	"testing"

	"railhead/hack/cluster/fabric"
)

func TestFaultOf(t *testing.T) {
	t.Parallel()
	for want, state := range map[string]fabric.State{
		"":                {Connected: true, Carrier: true},
		"not connected":   {Carrier: true},
		"cut":             {Connected: true, Cut: true},
		"without carrier": {Connected: true},
	} {
		if got := faultOf(state); got != want {
			t.Errorf("%+v: %q, want %q", state, got, want)
		}
	}
}
