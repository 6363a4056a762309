package driver

import (
	"strings"
	"testing"

	"railhead/hack/cluster/plan"
)

// TestUpRefuses wants what cannot be to be refused before anything is built.
func TestUpRefuses(t *testing.T) {
	t.Parallel()
	good := plan.Options{Nodes: 1, IPv4: true}
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no family":         {Options{Options: plan.Options{Nodes: 1}}, "neither IPv4 nor IPv6"},
		"nodes":             {Options{Options: plan.Options{Nodes: 51, IPv4: true}}, "nodes 51: want 0 to 50"},
		"stand-ins":         {Options{Options: good, StandIns: -1}, "stand-ins -1: want 0 to"},
		"too many of these": {Options{Options: good, StandIns: maxStandIns + 1}, "want 0 to"},
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
