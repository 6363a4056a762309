package attach

import (
	"testing"

	"railhead/internal/kernel/kerneltest"
)

// TestSettingsOfAll has the network of the first rail set what the kernel hands on
// to links: the others have what their own networks ask for.
func TestSettingsOfAll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ all, own map[string]string }{
		"default":           {all: map[string]string{"net.ipv4.conf.default.rp_filter": "1"}},
		"forwarding":        {all: map[string]string{"net.ipv4.ip_forward": "1"}, own: map[string]string{"net.ipv4.conf.IFNAME.forwarding": "0"}},
		"forwarding of all": {all: map[string]string{"net.ipv4.conf.all.forwarding": "1"}, own: map[string]string{"net.ipv4.conf.IFNAME.forwarding": "0"}},
		"IPv6 forwarding":   {all: map[string]string{"net.ipv6.conf.all.forwarding": "1"}, own: map[string]string{"net.ipv6.conf.IFNAME.forwarding": "0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kerneltest.NetNS(t, func() {
				w := newWorld(t)
				w.calico()
				pod := w.eightRails("46")
				for n := range pod.Interfaces {
					if i := &pod.Interfaces[n]; i.Link.Kind != Foreign {
						i.Tuning.Sysctls = test.own
					}
				}
				first := &pod.Interfaces[len(pod.Interfaces)-w.rails]
				first.Tuning.Sysctls = test.all
				before := w.snapshot()
				plan := w.plan(pod)
				if _, err := w.a.Apply(t.Context(), plan); err != nil {
					t.Fatal(err)
				}
				if err := w.a.Check(t.Context(), plan); err != nil {
					t.Errorf("check: %v", err)
				}
				if err := w.a.Undo(t.Context(), plan, nil); err != nil {
					t.Error(err)
				}
				w.same("undone", before)
			})
		})
	}
}
