package driver

import (
	"strings"
	"testing"

	"railhead/hack/cluster/plan"
)

// TestUpRefuses wants what cannot be to be refused before anything is built.
func TestUpRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no family": {Options{Options: plan.Options{Nodes: 1}}, "neither IPv4 nor IPv6"},
		"nodes":     {Options{Options: plan.Options{Nodes: 51, IPv4: true}}, "nodes 51: want 1 to 50"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.options.Dir = newDir(t)
			if _, err := Up(t.Context(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
			gone(t, test.options.Dir)
		})
	}
}
