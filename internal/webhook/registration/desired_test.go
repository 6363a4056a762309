package registration

import (
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"railhead/internal/golden"
	"railhead/internal/policy"
)

// states are worth a golden file each.
func states() map[string]State {
	service := Endpoint{Namespace: "railhead-system", Service: "railhead-controller"}
	inject := policy.DefaultConfig().PodResourceInject
	inject.Enabled = true
	some := inject
	some.NamespacesInclude = []string{"ai", "ml", "spiderpool"}
	return map[string]State{
		"disabled": {Endpoint: service, Bundle: []byte("bundle"), Annotated: []string{"ai"}},
		"enabled":  {Endpoint: service, Bundle: []byte("bundle"), Inject: inject},
		"annotated": {
			Endpoint: Endpoint{Namespace: "railhead-system", Service: "railhead-controller", Port: 5722}, Bundle: []byte("bundle"),
			Inject: inject, Annotated: []string{"ml", "ai", "kube-system", "spiderpool"},
		},
		"included": {Endpoint: Endpoint{URL: "https://10.0.0.1:9443"}, Inject: some, Annotated: []string{"ai", "other", "spiderpool"}},
	}
}

func TestDesired(t *testing.T) {
	for name, state := range states() {
		t.Run(name, func(t *testing.T) {
			mutating, validating := Desired(state)
			var got []byte
			for _, o := range []any{mutating, validating} {
				text, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				got = append(append(got, "---\n"...), text...)
			}
			golden.Equal(t, filepath.Join("testdata", name+".yaml"), string(got))
		})
	}
}
