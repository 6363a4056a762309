package exporter

import (
	"railhead/internal/counters"
	"railhead/internal/inventory"
)

// nodeExporterInfo is the family of node_exporter that describes a device.
var nodeExporterInfo = &counters.Family{Name: "node_infiniband_info", Kind: counters.Info, Tier: counters.Slow, Help: "An RDMA device."}

// nodeExporterStates are the families of node_exporter that tell the state of a
// port.
var nodeExporterStates = []struct {
	family counters.Family
	value  func(*inventory.Port) (uint64, bool)
}{
	{counters.Family{Name: "node_infiniband_state_id", Kind: counters.Gauge, Tier: counters.Slow, Help: "State of the port: 1 down, 2 init, 3 armed, 4 active, 5 active defer."}, stateID},
	{counters.Family{Name: "node_infiniband_physical_state_id", Kind: counters.Gauge, Tier: counters.Slow, Help: "Physical state of the port: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 link error recovery, 7 test."}, physicalStateID},
	{counters.Family{Name: "node_infiniband_rate_bytes_per_second", Kind: counters.Gauge, Unit: "bytes_per_second", Tier: counters.Slow, Help: "Signal rate of the port."}, rate},
}

// nodeExporterCounters are the families of node_exporter, and which of ours has
// the same values. Its legacy_ families are those of kernels before 4.5, which
// we do not know; port_discards_received is one of switches.
var nodeExporterCounters = []nodeExporterCounter{
	{counters.Family{Name: "node_infiniband_port_data_received_bytes", Help: "Data octets received on all virtual lanes."}, "rdma_port_rcv_data_bytes"},
	{counters.Family{Name: "node_infiniband_port_data_transmitted_bytes", Help: "Data octets sent on all virtual lanes."}, "rdma_port_xmit_data_bytes"},
	{counters.Family{Name: "node_infiniband_port_packets_received", Help: "Packets received on all virtual lanes."}, "rdma_port_rcv_packets"},
	{counters.Family{Name: "node_infiniband_port_packets_transmitted", Help: "Packets sent on all virtual lanes."}, "rdma_port_xmit_packets"},
	{counters.Family{Name: "node_infiniband_unicast_packets_received", Help: "Unicast packets received."}, "rdma_unicast_rcv_packets"},
	{counters.Family{Name: "node_infiniband_unicast_packets_transmitted", Help: "Unicast packets sent."}, "rdma_unicast_xmit_packets"},
	{counters.Family{Name: "node_infiniband_multicast_packets_received", Help: "Multicast packets received."}, "rdma_multicast_rcv_packets"},
	{counters.Family{Name: "node_infiniband_multicast_packets_transmitted", Help: "Multicast packets sent."}, "rdma_multicast_xmit_packets"},
	{counters.Family{Name: "node_infiniband_port_transmit_wait", Help: "Ticks in which the port had data to send and could not."}, "rdma_port_xmit_wait"},
	{counters.Family{Name: "node_infiniband_port_discards_transmitted", Help: "Packets that the port could not send because it was down or congested."}, "rdma_port_xmit_discards"},
	{counters.Family{Name: "node_infiniband_port_errors_received", Help: "Packets received with an error."}, "rdma_port_rcv_errors"},
	{counters.Family{Name: "node_infiniband_port_receive_remote_physical_errors", Help: "Packets received that were marked bad on the way."}, "rdma_port_rcv_remote_physical_errors"},
	{counters.Family{Name: "node_infiniband_port_receive_switch_relay_errors", Help: "Packets received that a switch could not relay."}, "rdma_port_rcv_switch_relay_errors"},
	{counters.Family{Name: "node_infiniband_port_constraint_errors_received", Help: "Packets received that a constraint of the port forbids."}, "rdma_port_rcv_constraint_errors"},
	{counters.Family{Name: "node_infiniband_port_constraint_errors_transmitted", Help: "Packets not sent because a constraint of the port forbids them."}, "rdma_port_xmit_constraint_errors"},
	{counters.Family{Name: "node_infiniband_symbol_error", Help: "Minor link errors on the lanes of the port."}, "rdma_symbol_error"},
	{counters.Family{Name: "node_infiniband_link_error_recovery", Help: "Times that the link recovered from an error."}, "rdma_link_error_recovery"},
	{counters.Family{Name: "node_infiniband_link_downed", Help: "Times that the link failed to recover and went down."}, "rdma_link_downed"},
	{counters.Family{Name: "node_infiniband_local_link_integrity_errors", Help: "Times that errors of the local link passed a threshold."}, "rdma_local_link_integrity_errors"},
	{counters.Family{Name: "node_infiniband_excessive_buffer_overrun_errors", Help: "Times that buffers overran in several flow control periods in a row."}, "rdma_excessive_buffer_overrun_errors"},
	{counters.Family{Name: "node_infiniband_vl15_dropped", Help: "Packets of management dropped for lack of resources."}, "rdma_vl15_dropped"},
	{counters.Family{Name: "node_infiniband_duplicate_requests_packets", Help: "Duplicate request packets received."}, "rdma_duplicate_request"},
	{counters.Family{Name: "node_infiniband_implied_nak_seq_errors", Help: "Acknowledgements that implied a lost response."}, "rdma_implied_nak_seq_err"},
	{counters.Family{Name: "node_infiniband_local_ack_timeout_errors", Help: "Times that an acknowledgement did not come in time."}, "rdma_local_ack_timeout_err"},
	{counters.Family{Name: "node_infiniband_np_cnp_packets_sent", Help: "Congestion notifications sent."}, "rdma_np_cnp_sent"},
	{counters.Family{Name: "node_infiniband_np_ecn_marked_roce_packets_received", Help: "RoCE packets received with a mark of congestion."}, "rdma_np_ecn_marked_roce_packets"},
	{counters.Family{Name: "node_infiniband_out_of_buffer_drops", Help: "Packets dropped for lack of a posted receive."}, "rdma_out_of_buffer"},
	{counters.Family{Name: "node_infiniband_out_of_sequence_packets_received", Help: "Packets received out of sequence."}, "rdma_out_of_sequence"},
	{counters.Family{Name: "node_infiniband_packet_sequence_errors", Help: "Sequence error acknowledgements received."}, "rdma_packet_seq_err"},
	{counters.Family{Name: "node_infiniband_req_cqes_errors", Help: "Requests completed with an error."}, "rdma_req_cqe_error"},
	{counters.Family{Name: "node_infiniband_req_cqes_flush_errors", Help: "Requests flushed with an error."}, "rdma_req_cqe_flush_error"},
	{counters.Family{Name: "node_infiniband_req_remote_access_errors", Help: "Requests that the peer did not permit."}, "rdma_req_remote_access_errors"},
	{counters.Family{Name: "node_infiniband_req_remote_invalid_request_errors", Help: "Requests that the peer found invalid."}, "rdma_req_remote_invalid_request"},
	{counters.Family{Name: "node_infiniband_resp_cqes_errors", Help: "Responses completed with an error."}, "rdma_resp_cqe_error"},
	{counters.Family{Name: "node_infiniband_resp_cqes_flush_errors", Help: "Responses flushed with an error."}, "rdma_resp_cqe_flush_error"},
	{counters.Family{Name: "node_infiniband_resp_local_length_errors", Help: "Local length errors found by the responder."}, "rdma_resp_local_length_error"},
	{counters.Family{Name: "node_infiniband_resp_remote_access_errors", Help: "Remote accesses that the responder did not permit."}, "rdma_resp_remote_access_errors"},
	{counters.Family{Name: "node_infiniband_rnr_nak_retry_packets_received", Help: "Receiver not ready acknowledgements received."}, "rdma_rnr_nak_retry_err"},
	{counters.Family{Name: "node_infiniband_roce_adp_retransmits", Help: "Adaptive retransmissions."}, "rdma_roce_adp_retrans"},
	{counters.Family{Name: "node_infiniband_roce_adp_retransmits_timeout", Help: "Timeouts because of adaptive retransmission."}, "rdma_roce_adp_retrans_to"},
	{counters.Family{Name: "node_infiniband_roce_slow_restart_used", Help: "Times that slow restart was used."}, "rdma_roce_slow_restart"},
	{counters.Family{Name: "node_infiniband_roce_slow_restart_cnps", Help: "Congestion notifications that slow restart made."}, "rdma_roce_slow_restart_cnps"},
	{counters.Family{Name: "node_infiniband_roce_slow_restart", Help: "Times that the state changed to slow restart."}, "rdma_roce_slow_restart_trans"},
	{counters.Family{Name: "node_infiniband_rp_cnp_packets_handled", Help: "Congestion notifications received that throttled."}, "rdma_rp_cnp_handled"},
	{counters.Family{Name: "node_infiniband_rp_cnp_ignored_packets_received", Help: "Congestion notifications received and ignored."}, "rdma_rp_cnp_ignored"},
	{counters.Family{Name: "node_infiniband_rx_atomic_requests", Help: "Atomic requests received."}, "rdma_rx_atomic_requests"},
	{counters.Family{Name: "node_infiniband_rx_dct_connect_requests", Help: "Connection requests received by dynamically connected targets."}, "rdma_rx_dct_connect"},
	{counters.Family{Name: "node_infiniband_rx_read_requests", Help: "Read requests received."}, "rdma_rx_read_requests"},
	{counters.Family{Name: "node_infiniband_rx_write_requests", Help: "Write requests received."}, "rdma_rx_write_requests"},
	{counters.Family{Name: "node_infiniband_rx_icrc_encapsulated_errors", Help: "RoCE packets received with a wrong checksum."}, "rdma_rx_icrc_encapsulated"},
}
