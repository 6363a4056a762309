package simulation

import (
	"fmt"
	"slices"
)

// mlx5Hardware are the hardware counters of mlx5_ib (counters.c): those of
// queues have 32 bits, those of congestion 64.
var mlx5Hardware = slices.Concat(
	[]row{
		volume("rx_write_requests", 32, rxWrites),
		volume("rx_read_requests", 32, rxReads),
		volume("rx_atomic_requests", 32, rxAtomics),
	},
	counts(32, "rx_dct_connect", "out_of_buffer", "out_of_sequence", "duplicate_request", "rnr_nak_retry_err", "packet_seq_err",
		"implied_nak_seq_err", "local_ack_timeout_err", "resp_local_length_error", "resp_cqe_error", "req_cqe_error",
		"req_remote_invalid_request", "req_remote_access_errors", "resp_remote_access_errors", "resp_cqe_flush_error",
		"req_cqe_flush_error", "req_transport_retries_exceeded", "req_rnr_retries_exceeded",
		"roce_adp_retrans", "roce_adp_retrans_to", "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans"),
	ofPF(counts(64, "rp_cnp_ignored", "rp_cnp_handled", "np_ecn_marked_roce_packets", "np_cnp_sent", "rx_icrc_encapsulated")),
	[]row{
		{name: "cc_rx_ce_pkts", bits: 64, isOff: true},
		{name: "cc_rx_cnp_pkts", bits: 64, isOff: true},
		{name: "cc_tx_cnp_pkts", bits: 64, isOff: true},
		{name: "rdma_tx_packets", bits: 64, isOff: true, value: txPackets},
		{name: "rdma_tx_bytes", bits: 64, isOff: true, value: txBytes},
		{name: "rdma_rx_packets", bits: 64, isOff: true, value: rxPackets},
		{name: "rdma_rx_bytes", bits: 64, isOff: true, value: rxBytes},
	},
)

// mlx5Statistics are the driver's statistics of mlx5_core (en_stats.c): of the
// function, then of the port, which only the PF sees.
var mlx5Statistics = slices.Concat(
	[]row{
		volume("rx_packets", 64, ethernetPacketCount),
		volume("rx_bytes", 64, ethernetByteCount),
		volume("tx_packets", 64, ethernetPacketCount),
		volume("tx_bytes", 64, ethernetByteCount),
	},
	counts(64, "rx_out_of_buffer", "rx_steer_missed_packets"),
	[]row{
		volume("rx_vport_unicast_packets", 64, ethernetPacketCount),
		volume("rx_vport_unicast_bytes", 64, ethernetByteCount),
		volume("tx_vport_unicast_packets", 64, ethernetPacketCount),
		volume("tx_vport_unicast_bytes", 64, ethernetByteCount),
	},
	counts(64, "rx_vport_multicast_packets", "rx_vport_multicast_bytes", "tx_vport_multicast_packets", "tx_vport_multicast_bytes",
		"rx_vport_broadcast_packets", "rx_vport_broadcast_bytes", "tx_vport_broadcast_packets", "tx_vport_broadcast_bytes"),
	[]row{
		volume("rx_vport_rdma_unicast_packets", 64, rxPackets),
		volume("rx_vport_rdma_unicast_bytes", 64, rxBytes),
		volume("tx_vport_rdma_unicast_packets", 64, txPackets),
		volume("tx_vport_rdma_unicast_bytes", 64, txBytes),
	},
	counts(64, "rx_vport_rdma_multicast_packets", "rx_vport_rdma_multicast_bytes",
		"tx_vport_rdma_multicast_packets", "tx_vport_rdma_multicast_bytes"),
	ofPF(mlx5Port()), ofPF(mlx5Priorities()),
)

func mlx5Port() []row {
	return slices.Concat(
		[]row{
			volume("tx_packets_phy", 64, physicalTxPackets),
			volume("rx_packets_phy", 64, physicalRxPackets),
			volume("rx_crc_errors_phy", 64, nil),
			volume("tx_bytes_phy", 64, physicalTxBytes),
			volume("rx_bytes_phy", 64, physicalRxBytes),
			volume("rx_bits_phy", 64, func(v *volumes) uint64 { return 8 * physicalRxBytes(v) }),
			// Some bits are corrected on any link: here one of 10¹².
			volume("rx_corrected_bits_phy", 64, func(v *volumes) uint64 { return physicalRxBytes(v) / 1e12 * 8 }),
		},
		counts(64, "tx_multicast_phy", "tx_broadcast_phy", "rx_multicast_phy", "rx_broadcast_phy",
			"rx_in_range_len_errors_phy", "rx_out_of_range_len_phy", "rx_oversize_pkts_phy", "rx_symbol_err_phy",
			"tx_mac_control_phy", "rx_mac_control_phy", "rx_unsupported_op_phy", "rx_pause_ctrl_phy", "tx_pause_ctrl_phy",
			"rx_discards_phy", "tx_discards_phy", "tx_errors_phy", "rx_undersize_pkts_phy", "rx_fragments_phy", "rx_jabbers_phy",
			"link_down_events_phy", "rx_pcs_symbol_err_phy", "rx_err_lane_0_phy", "rx_err_lane_1_phy", "rx_err_lane_2_phy",
			"rx_err_lane_3_phy", "rx_buffer_passed_thres_phy", "rx_pci_signal_integrity", "tx_pci_signal_integrity",
			"outbound_pci_stalled_rd", "outbound_pci_stalled_wr", "outbound_pci_stalled_rd_events",
			"outbound_pci_stalled_wr_events", "outbound_pci_buffer_overflow", "dev_internal_queue_oob", "dev_out_of_buffer"),
		counts(64, "tx_pause_storm_warning_events", "tx_pause_storm_error_events",
			"module_unplug", "module_bus_stuck", "module_high_temp", "module_bad_shorted"),
	)
}

func mlx5Priorities() []row {
	var rows []row
	for p := range priorities {
		for _, c := range []struct {
			format         string
			rdma, ethernet func(*volumes) uint64
		}{
			{"rx_prio%d_bytes", framedRxBytes, ethernetByteCount},
			{"rx_prio%d_packets", portRxPackets, ethernetPacketCount},
			{"tx_prio%d_bytes", framedTxBytes, ethernetByteCount},
			{"tx_prio%d_packets", portTxPackets, ethernetPacketCount},
		} {
			rows = append(rows, volume(fmt.Sprintf(c.format, p), 64, ofPriority(p, c.rdma, c.ethernet)))
		}
	}
	rows = append(rows, eachPriority("rx_prio%d_buf_discard", "rx_prio%d_cong_discard", "rx_prio%d_marked", "rx_prio%d_discards")...)
	for p := range priorities {
		for _, format := range []string{
			"rx_prio%d_pause", "rx_prio%d_pause_duration", "tx_prio%d_pause", "tx_prio%d_pause_duration", "rx_prio%d_pause_transition",
		} {
			rows = append(rows, row{name: fmt.Sprintf(format, p), bits: 64, pauseOf: &p})
		}
	}
	return rows
}

// ofPriority counts RDMA where it goes on a priority, and on priority 0 what is
// not RDMA.
func ofPriority(p int, rdma, ethernet func(*volumes) uint64) func(*volumes) uint64 {
	return func(v *volumes) (n uint64) {
		if p == v.card.priority {
			n = rdma(v)
		}
		if p == 0 {
			n += ethernet(v)
		}
		return n
	}
}

// framedRxBytes are bytes of RDMA on the wire.
func framedRxBytes(v *volumes) uint64     { return v.port.rxBytes + headers*v.port.rxPackets }
func framedTxBytes(v *volumes) uint64     { return v.port.txBytes + headers*v.port.txPackets }
func physicalRxBytes(v *volumes) uint64   { return framedRxBytes(v) + ethernetByteCount(v) }
func physicalTxBytes(v *volumes) uint64   { return framedTxBytes(v) + ethernetByteCount(v) }
func physicalRxPackets(v *volumes) uint64 { return v.port.rxPackets + ethernetPacketCount(v) }
func physicalTxPackets(v *volumes) uint64 { return v.port.txPackets + ethernetPacketCount(v) }

// vnicCounters are what the reporter of a function's virtual NIC counts
// (reporter_vnic.c).
var vnicCounters = []string{
	"total_error_queues", "send_queue_priority_update_flow", "cq_overrun", "async_eq_overrun", "comp_eq_overrun",
	"quota_exceeded_command", "invalid_command", "nic_receive_steering_discard", "generated_pkt_steering_fail",
	"handled_pkt_steering_fail", "icm_consumption", "bar_uar_access", "odp_local_triggered_page_fault",
	"odp_remote_triggered_page_fault",
}
