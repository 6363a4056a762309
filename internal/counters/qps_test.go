package counters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/inventory"
)

// TestQPSeries wants of counters of queue pairs all series that pods have a
// share of.
func TestQPSeries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		module, counter string
		want            []string
	}{
		{"mlx5_core", "out_of_buffer", []string{"rdma_out_of_buffer"}},
		{"mlx5_core", "out_of_sequence", []string{"rdma_port_out_of_sequence"}},
		{"mlx5_core", "local_ack_timeout_err", []string{"rdma_local_ack_timeout_err", "rdma_port_retransmit_timeouts"}},
		{"mlx5_core", "req_rnr_retries_exceeded", []string{"rdma_port_retries_exceeded reason=rnr"}},
		{"mlx5_core", "rdma_rx_bytes", []string{"rdma_rdma_rx_bytes", "rdma_port_receive_bytes"}},
		{"mlx5_core", "rdma_tx_packets", []string{"rdma_rdma_tx_packets", "rdma_port_transmit_packets"}},
		{"mlx5_core", "np_cnp_sent", nil}, // of the physical port
		{"mlx5_core", "vport_out_of_buffer", nil},
		{"mlx5_core", "unheard_of", nil},
		{"mlx5_core", "tx_rdma_ucast_bytes", nil}, // of another driver
		{"ionic", "tx_rdma_mcast_bytes", []string{"rdma_port_transmit_bytes"}},
		{"ionic", "resp_rx_outouf_seq", []string{"rdma_port_out_of_sequence"}},
		{"ionic", "resp_rx_outof_buf", []string{"rdma_resp_rx_outof_buf"}},
	} {
		r := newRig(t, test.module, inventory.PF, inventory.Ethernet)
		reader := NewReader(&r.device)
		var got []string
		for _, s := range reader.QPSeries(1, test.counter) {
			got = append(got, strings.Join(append([]string{s.Family.Name}, ownLabels(s)...), " "))
			if s.Family.Pod == "" {
				t.Errorf("%s feeds %s, which pods have no share of", test.counter, s.Family.Name)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", test.counter, test.module, diff)
		}
		if others := reader.QPSeries(2, test.counter); others != nil {
			t.Errorf("%s of a port that is not there: %v", test.counter, others)
		}
	}
}

// ownLabels are the labels of a series beyond those of its scope.
func ownLabels(s *Series) (own []string) {
	for _, l := range s.Labels {
		if l.Name != "device" && l.Name != "port" && l.Name != "netdev" {
			own = append(own, l.Name+"="+l.Value)
		}
	}
	return own
}

// TestQPSeriesAreThoseOfTheDevice wants the same series as a Read gives, before
// and after it, and none for the port of a representor.
func TestQPSeriesAreThoseOfTheDevice(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mlx5_core", inventory.PF, inventory.Ethernet)
	r.equip()
	reader := NewReader(&r.device)
	series := reader.QPSeries(1, "rdma_rx_bytes")
	read := map[*Series]bool{}
	for _, sample := range r.read(reader, r.access()) {
		read[sample.Series] = true
	}
	for _, s := range append(series, reader.QPSeries(1, "out_of_buffer")...) {
		if !read[s] {
			t.Errorf("%s is not the series that was read", s.Family.Name)
		}
	}
	r.device.RDMA.Ports[0].Representor = true
	if got := NewReader(&r.device).QPSeries(1, "out_of_buffer"); got != nil {
		t.Errorf("series of a representor: %v", got)
	}
}
