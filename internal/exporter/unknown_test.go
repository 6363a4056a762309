package exporter

import (
	"strings"
	"testing"
	"time"

	"railhead/internal/inventory"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
	"railhead/internal/simulation"
)

// TestUnknown names a counter that has no row by the driver as the table calls
// it.
func TestUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 0, nil)
	r.node.own.ChangeHCA(0, func(h *fakekernel.HCA) {
		port := h.Ports[1]
		port.Counters = append(port.Counters, rdmanl.CounterStatus{Index: 2, Name: "new_in_this_kernel", Enabled: true})
	})
	r.sample(15 * time.Second)
	r.want(map[string]string{`rdma_exporter_unknown_counters_total{driver="mlx5",name="new_in_this_kernel"}`: "1"})
}

// TestVendors wants the table to know every counter of the simulated cards.
func TestVendors(t *testing.T) {
	t.Parallel()
	scenario, err := simulation.Load("../../scenarios/vendors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	sim, err := simulation.Start(scenario, t.TempDir(), clock.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	reader, err := inventory.NewReader(sim.Node())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	r := &rig{t: t, clock: clock, e: newTestExporter(t, func(c *Config) { c.Node, c.Now = sim.Node(), clock.now })}
	r.snap = inventory.Join(reader.Read(nil, inventory.Changes{All: true}), inventory.Options{})
	r.sample(15 * time.Second)
	text := r.scrape()
	if !strings.Contains(text, "rdma_resize_cq_cnt_total{") {
		t.Error("the card of bnxt_re is not read")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "rdma_exporter_unknown_counters_total{") {
			t.Errorf("no row: %s", line)
		}
	}
}
