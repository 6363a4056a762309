package counters

import (
	"testing"

	"railhead/internal/inventory"
)

// TestAsks needs no more than ethtool for the traffic of a VF of mlx5, and what
// was found to be lacking no more.
func TestAsks(t *testing.T) {
	t.Parallel()
	index := uint32(3)
	r := NewReader(&inventory.Device{
		ID: "0000:17:00.2", Kind: inventory.VF, Parent: "0000:17:00.0", PCI: &inventory.PCI{Address: "0000:17:00.2", Driver: "mlx5_core"},
		RDMA:    &inventory.RDMA{Name: "mlx5_3", Index: &index, Ports: []inventory.Port{{Number: 1, LinkLayer: inventory.Ethernet, Netdev: "eth3"}}},
		Netdevs: []inventory.Netdev{{Name: "eth3", Index: 7}},
	})
	for source, want := range map[string]bool{fromEthtool: true, fromRDMA: false, fromLink: false, fromFiles: false, fromDevlink: false} {
		if got := r.Asks(source, Traffic); got != want {
			t.Errorf("traffic asks %s: %v", source, got)
		}
	}
	if !r.Asks(fromRDMA, Errors) {
		t.Error("errors do not ask rdma")
	}
	for _, g := range r.groups {
		g.rest.begin()
	}
	if r.Asks(fromEthtool, Traffic) {
		t.Error("what is lacking is asked for")
	}
}
