package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"railhead/internal/inventory"
)

// TestReport wants devices to be told when they change, and a problem once until
// it was mended.
func TestReport(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	r := reporter{node: "n1", log: slog.New(slog.NewTextHandler(&text, nil)), last: &counts{-1, 0, 0}}
	whole := &inventory.Snapshot{Devices: []inventory.Device{
		{ID: "0000:17:00.0", Rail: new(0), RDMA: &inventory.RDMA{Name: "mlx5_0"}},
		{ID: "0000:17:00.1", Rail: new(0), RDMA: &inventory.RDMA{Name: "mlx5_1", NetNS: &inventory.NetNS{}}},
		{ID: "0000:18:00.0"},
	}}
	bad := &inventory.Snapshot{Devices: whole.Devices[:1], Problems: []string{"--rails: nothing is named bogus"}}
	told := map[string]bool{}
	for _, s := range []*inventory.Snapshot{whole, whole, bad, bad, whole, bad} {
		told = r.problems(s, told)
		r.devices(s)
	}
	for part, want := range map[string]int{
		`devices=2 in_other_namespaces=1 rails=1`: 2,
		`devices=1 in_other_namespaces=0 rails=1`: 2,
		`named bogus`: 2,
		"node=n1":     4,
	} {
		if got := strings.Count(text.String(), part); got != want {
			t.Errorf("%q is said %d times, want %d:\n%s", part, got, want, text.String())
		}
	}
}
