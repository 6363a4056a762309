package counters

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"railhead/internal/inventory"
	"railhead/internal/kernel/fakekernel"
)

// TestSpared leaves out the question that an error names, and no other.
func TestSpared(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, question string
		tier           Tier
		spoil          func(r *rig)
		lost, left     string
	}{
		{"statistics", "rdma statistic of dev0/1/eth0", Errors, refuse(fakekernel.GetStatistics, unix.EIO), "rdma_out_of_buffer_total", "rdma_port_state"},
		{"states", "states of ports", Errors, refuse(fakekernel.GetPort, unix.EIO), "rdma_port_state", "rdma_out_of_buffer_total"},
		{"a file", "dev0/ports/1/counters/port_rcv_data", Traffic, func(r *rig) {
			r.write("class/infiniband/dev0/ports/1/counters/port_rcv_data", "nonsense")
		}, "rdma_port_receive_bytes_total", "rdma_port_transmit_bytes_total"},
		{"a file of many", "dev0/ports/1/cm_tx_msgs/req", Slow, func(r *rig) {
			r.write("class/infiniband/dev0/ports/1/cm_tx_msgs/req", "nonsense")
		}, "", "rdma_port_cm_messages_total"},
		{"all files", "dev0/ports/1/counters", Traffic, func(r *rig) {
			for _, file := range []string{"port_rcv_data", "port_xmit_data", "port_rcv_packets", "port_xmit_packets", "unicast_rcv_packets", "unicast_xmit_packets"} {
				r.write("class/infiniband/dev0/ports/1/counters/"+file, "nonsense")
			}
		}, "rdma_port_receive_bytes_total", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
			r.equip()
			test.spoil(r)
			reader, a := NewReader(&r.device), r.access()
			_, err := reader.Read(test.tier, a, nil)
			if e, ok := errors.AsType[*ReadError](err); !ok || e.Question != test.question {
				t.Fatalf("%#v, want an error of %q", err, test.question)
			}
			a.Spared = map[string]bool{test.question: true}
			samples, err := reader.Read(test.tier, a, nil)
			if err != nil {
				t.Errorf("what is spared is asked: %v", err)
			}
			got := familiesOf(samples)
			if test.lost != "" && got[test.lost] || test.left != "" && !got[test.left] {
				t.Errorf("%q lost: %v, %q left: %v", test.lost, !got[test.lost], test.left, got[test.left])
			}
		})
	}
}
