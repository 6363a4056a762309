package counters

import (
	"strconv"
	"testing"
)

// TestSlotsStay makes series of one family, more than a place has room for at
// once, and asks for them again.
func TestSlotsStay(t *testing.T) {
	p := newPlace("mlx5_0", "1", "eth0")
	f := known.byName["rdma_port_state"]
	var made []*slot
	for i := range 3*slotsAtOnce + 1 {
		made = append(made, p.slot(f, values{strconv.Itoa(i)}, 1))
	}
	for i, want := range made {
		got := p.slot(f, values{strconv.Itoa(i)}, 1)
		if got != want {
			t.Errorf("slot %d is another than before", i)
		}
		if value := got.series.Labels[len(p.labels)].Value; value != strconv.Itoa(i) {
			t.Errorf("slot %d has value %q", i, value)
		}
	}
}
