package exporter

import (
	"slices"
	"testing"

	"railhead/internal/counters"
)

// TestCompatTables finds rows that are made of families which do not exist, and
// families of other exporters that would be there twice.
func TestCompatTables(t *testing.T) {
	t.Parallel()
	known := map[string]*counters.Family{}
	for _, f := range counters.Families() {
		known[f.Name] = f
	}
	for _, name := range append(slices.Clone(spiderpoolCounters), spiderpoolTOSSource) {
		if known[name] == nil {
			t.Errorf("Spiderpool: there is no family %s", name)
		}
	}
	theirs := map[string]bool{}
	for i := range nodeExporterCounters {
		c := &nodeExporterCounters[i]
		if known[c.ours] == nil {
			t.Errorf("%s: there is no family %s", c.family.Name, c.ours)
		}
		if theirs[c.family.Name] {
			t.Errorf("%s is there twice", c.family.Name)
		}
		theirs[c.family.Name] = true
	}
}

// TestOwnFamilies wants all families that the exporter fills to be in the table.
func TestOwnFamilies(t *testing.T) {
	t.Parallel()
	c := newCatalog(counters.Families(), filter{})
	for _, name := range []string{
		ageFamily, "rdma_exporter_read_errors", "rdma_exporter_device_quarantined", "rdma_exporter_collector_success",
		"rdma_exporter_unknown_counters", "rdma_exporter_pods", "rdma_exporter_build_info", "rdma_exporter_collect_duration_seconds",
		"rdma_pod_info", "rdma_pod_device_info", "rdma_pod_qps", "rdma_pod_memory_regions", "rdma_pod_memory_region_bytes",
		"rdma_pod_cm_ids", "rdma_pod_contexts", "rdma_pod_attribution_coverage_ratio",
	} {
		if c.known(name) == nil {
			t.Errorf("there is no family %s", name)
		}
	}
	for _, f := range counters.Families() {
		if f.Pod != "" && c.known(f.Pod) == nil {
			t.Errorf("%s: there is no family %s", f.Name, f.Pod)
		}
	}
}

func TestSpiderpoolGUID(t *testing.T) {
	t.Parallel()
	for guid, want := range map[string]string{
		"0c42:a103:0065:1234": "34:12:65:00:03:a1:42:0c",
		"":                    "",
		"odd":                 "odd",
	} {
		if got := spiderpoolGUID(guid); got != want {
			t.Errorf("%q: %q, want %q", guid, got, want)
		}
	}
}
