package top

import (
	"strings"
	"testing"

	"railhead/internal/counters"
)

// TestFamilies wants top to read no family that nobody exports.
func TestFamilies(t *testing.T) {
	t.Parallel()
	exported := map[string]bool{}
	for _, f := range counters.Families() {
		for _, name := range []string{f.Name, f.Pod} {
			if f.Kind == counters.Counter {
				name += "_total"
			}
			exported[name] = true
		}
	}
	for name := range shownFamilies() {
		isPods := strings.HasPrefix(name, "rdma_pod_") // there is none of what a pod has no share of
		if !exported[name] && !isPods {
			t.Errorf("top reads %s, which is no family", name)
		}
	}
	for _, pods := range []string{"rdma_pod_receive_bytes_total", "rdma_pod_retransmit_timeouts_total", "rdma_pod_out_of_buffer_total", podInfo, podDeviceInfo, podQueuePairs} {
		if !exported[pods] || !shownFamilies()[pods] {
			t.Errorf("%s: exported %t, read %t", pods, exported[pods], shownFamilies()[pods])
		}
	}
}
