package counters

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/inventory"
)

// narrowRig is a VF of mlx5 with one narrow counter and a wide one.
type narrowRig struct {
	*rig
	narrow, wide uint64
}

func newNarrowRig(t *testing.T) *narrowRig {
	t.Helper()
	n := &narrowRig{rig: newRig(t, "mlx5_core", inventory.VF, inventory.Ethernet)}
	n.statistics([]string{"out_of_buffer", "np_cnp_sent"}, func(dst []uint64) { dst[0], dst[1] = n.narrow&(1<<32-1), n.wide })
	return n
}

// read reads the errors of the device after the counter has grown, and wants it
// to be so much.
func (n *narrowRig) read(r *Reader, grown, want uint64) {
	n.tb.Helper()
	n.narrow += grown
	samples, err := r.Read(Errors, n.access(), nil)
	if err != nil {
		n.tb.Fatal(err)
	}
	if got := valueOf(samples, "rdma_out_of_buffer_total", "eth0"); got == nil || *got != want {
		n.tb.Fatalf("out_of_buffer is %v, want %d", got, want)
	}
}

// TestContinue has a function become another device, whose Reader goes on where
// the one before it was, also when it is replaced before it has read.
func TestContinue(t *testing.T) {
	t.Parallel()
	n := newNarrowRig(t)
	first := NewReader(&n.device)
	n.read(first, 4_000_000_000, 4_000_000_000)
	if kept := first.Narrow(nil); kept != nil {
		t.Errorf("%v is kept of what has not wrapped, want nothing", kept)
	}
	n.read(first, 1_000_000_000, 5_000_000_000)
	want := []Narrow{{Port: "1", Source: "rdma statistic", Key: "out_of_buffer", Last: 5_000_000_000 - 1<<32, Total: 5_000_000_000}}
	if diff := cmp.Diff(want, first.Narrow(nil)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	elsewhere := Narrow{Port: "2", Source: "rdma statistic", Key: "out_of_buffer", Last: 1, Total: 2}
	unread := NewReader(&n.device)
	unread.Continue(append(want, elsewhere))
	if diff := cmp.Diff(append(want, elsewhere), unread.Narrow(nil)); diff != "" {
		t.Errorf("kept before it has read (-want +got):\n%s", diff)
	}
	second := NewReader(&n.device)
	second.Continue(unread.Narrow(nil))
	n.read(second, 3_000_000_000, 8_000_000_000) // more than half of what fits
	n.read(second, 1_000_000_000, 9_000_000_000)
	if got := second.Narrow(nil); len(got) != 2 || !slices.Contains(got, elsewhere) {
		t.Errorf("kept %v, want the counter and what was not read", got)
	}
}

// TestContinueOfBond wants the netdevs of a port to be told apart by name, as
// they do not move.
func TestContinueOfBond(t *testing.T) {
	t.Parallel()
	n := newNarrowRig(t)
	n.device.Bond = &inventory.Bond{Name: "bond0", Members: []string{"eth0", "eth1"}}
	r := NewReader(&n.device)
	n.read(r, 4_000_000_000, 4_000_000_000)
	n.read(r, 1_000_000_000, 5_000_000_000)
	if got := r.Narrow(nil); len(got) != 1 || got[0].Port != "1 eth0" {
		t.Errorf("kept %v, want a counter of 1 eth0", got)
	}
}

func TestWentBack(t *testing.T) {
	t.Parallel()
	n := newNarrowRig(t)
	r := NewReader(&n.device)
	n.read(r, 5_000, 5_000)
	n.wide = 10
	n.read(r, 10, 5_010)
	n.narrow, n.wide = 3, 1 // which is told as it is
	n.read(r, 0, 5_010)
	n.read(r, 1<<31, 5_010)
	if got := r.WentBack(); got != 2 {
		t.Errorf("went back %d times, want 2: by a reset, and by growth of half of what fits", got)
	}
}

// TestNarrowAllocates wants nothing to be allocated for what is kept.
func TestNarrowAllocates(t *testing.T) { //nolint:paralleltest // it counts allocations
	n := newNarrowRig(t)
	r := NewReader(&n.device)
	n.read(r, 4_000_000_000, 4_000_000_000)
	n.read(r, 1_000_000_000, 5_000_000_000)
	kept := r.Narrow(nil)
	if got := testing.AllocsPerRun(100, func() { kept = r.Narrow(kept[:0]) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}
