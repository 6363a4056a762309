package simulation

import "slices"

// bnxtHardware are the counters of bnxt_re's port (hw_counters.c). Those that
// begin with active_ are levels.
var bnxtHardware = slices.Concat(
	counts(64, "active_pds", "active_ahs", "active_qps", "active_rc_qps", "active_ud_qps", "active_srqs", "active_cqs",
		"active_mrs", "active_mws", "watermark_pds", "watermark_ahs", "watermark_qps", "watermark_rc_qps", "watermark_ud_qps",
		"watermark_srqs", "watermark_cqs", "watermark_mrs", "watermark_mws", "resize_cq_cnt"),
	[]row{
		volume("rx_pkts", 64, rxPackets),
		volume("rx_bytes", 64, rxBytes),
		volume("tx_pkts", 64, txPackets),
		volume("tx_bytes", 64, txBytes),
	},
	counts(64, "recoverable_errors", "tx_roce_errors", "tx_roce_discards", "rx_roce_errors", "rx_roce_discards",
		"to_retransmits", "seq_err_naks_rcvd", "max_retry_exceeded", "rnr_naks_rcvd", "missing_resp", "unrecoverable_err",
		"bad_resp_err", "local_qp_op_err", "local_protection_err", "mem_mgmt_op_err", "remote_invalid_req_err",
		"remote_access_err", "remote_op_err", "dup_req", "res_exceed_max", "res_length_mismatch", "res_exceeds_wqe",
		"res_opcode_err", "res_rx_invalid_rkey", "res_rx_domain_err", "res_rx_no_perm", "res_rx_range_err", "res_tx_invalid_rkey",
		"res_oos_drop_count"),
	[]row{
		volume("tx_read_req", 64, txReads),
		volume("tx_write_req", 64, txWrites),
		volume("rx_read_req", 64, rxReads),
		volume("rx_write_req", 64, rxWrites),
		volume("rx_atomic_req", 64, rxAtomics),
		volume("rx_send_req", 64, rxSends),
		volume("rx_roce_good_pkts", 64, rxPackets),
		volume("rx_roce_good_bytes", 64, rxBytes),
	},
	counts(64, "rx_out_of_buffer", "oos_drop_count"),
)

// bnxtStatistics are the driver's statistics of bnxt_en.
var bnxtStatistics = slices.Concat(
	[]row{
		volume("rx_ucast_packets", 64, ethernetPacketCount),
		volume("rx_ucast_bytes", 64, ethernetByteCount),
		volume("tx_ucast_packets", 64, ethernetPacketCount),
		volume("tx_ucast_bytes", 64, ethernetByteCount),
	},
	ofPF(slices.Concat(
		[]row{
			volume("rx_bytes", 64, physicalRxBytes),
			volume("tx_bytes", 64, physicalTxBytes),
		},
		counts(64, "rx_fcs_err_frames", "link_down_events", "rx_pcs_symbol_err", "rx_corrected_bits", "rx_pause_frames",
			"tx_pause_frames", "rx_stat_discard"),
		eachPriority("rx_pfc_ena_frames_pri%d", "tx_pfc_ena_frames_pri%d", "pfc_pri%d_rx_duration_us", "pfc_pri%d_tx_duration_us"),
	)),
)

// efaHardware are the counters of an EFA port, efaDevice those of the device.
var (
	efaHardware = slices.Concat(
		[]row{
			volume("tx_bytes", 64, txBytes),
			volume("tx_pkts", 64, txPackets),
			volume("rx_bytes", 64, rxBytes),
			volume("rx_pkts", 64, rxPackets),
			volume("rdma_read_wrs", 64, txReads),
			volume("rdma_write_wrs", 64, txWrites),
			volume("rdma_write_recv_bytes", 64, rxBytes),
		},
		counts(64, "rx_drops", "send_bytes", "send_wrs", "recv_bytes", "recv_wrs", "rdma_read_bytes", "rdma_read_wr_err",
			"rdma_read_resp_bytes", "rdma_write_bytes", "rdma_write_wr_err", "retrans_bytes", "retrans_pkts",
			"retrans_timeout_events", "unresponsive_remote_events", "impaired_remote_conn_events"),
	)
	efaDevice = counts(64, "submitted_cmds", "completed_cmds", "cmds_err", "no_completion_cmds", "keep_alive_rcvd",
		"alloc_pd_err", "create_qp_err", "create_cq_err", "reg_mr_err", "alloc_ucontext_err", "create_ah_err", "mmap_err")
)

// irdmaHardware are the counters of irdma (hw.c), whose names mix two ways of
// writing.
var irdmaHardware = slices.Concat(
	[]row{
		volume("ip4InOctets", 48, rxBytes),
		volume("ip4InPkts", 48, rxPackets),
		volume("ip4OutOctets", 48, txBytes),
		volume("ip4OutPkts", 48, txPackets),
		volume("iwInRdmaReads", 48, rxReads),
		volume("iwInRdmaSends", 48, rxSends),
		volume("iwInRdmaWrites", 48, rxWrites),
		volume("iwOutRdmaReads", 48, txReads),
		volume("iwOutRdmaWrites", 48, txWrites),
		volume("RxUDP", 48, rxPackets),
		volume("TxUDP", 48, txPackets),
	},
	counts(32, "ip4InDiscards", "ip4InTruncatedPkts", "ip4OutNoRoutes", "ip6InDiscards", "ip6InTruncatedPkts", "ip6OutNoRoutes",
		"tcpInOptErrors", "tcpInProtoErrors", "rxVlanErrors", "cnpHandled", "cnpIgnored"),
	counts(48, "ip4InReasmRqd", "ip4InMcastPkts", "ip4OutSegRqd", "ip4OutMcastPkts", "ip6InOctets", "ip6InPkts", "ip6OutOctets",
		"ip6OutPkts", "tcpInSegs", "tcpOutSegs", "tcpRetransSegs", "iwOutRdmaSends", "iwRdmaBnd", "iwRdmaInv", "RxECNMrkd", "cnpSent"),
)

// ionicHardware are the counters of ionic_rdma's port.
var ionicHardware = slices.Concat(
	[]row{
		volume("tx_rdma_ucast_bytes", 64, txBytes),
		volume("tx_rdma_ucast_pkts", 64, txPackets),
		volume("rx_rdma_ucast_bytes", 64, rxBytes),
		volume("rx_rdma_ucast_pkts", 64, rxPackets),
	},
	counts(64, "tx_rdma_mcast_pkts", "tx_rdma_mcast_bytes", "rx_rdma_mcast_pkts", "rx_rdma_mcast_bytes",
		"tx_rdma_cnp_pkts", "rx_rdma_cnp_pkts", "rx_rdma_ecn_pkts", "tx_rdma_retx_pkts", "tx_rdma_retx_bytes",
		"tx_rdma_ack_timeout", "req_rx_pkt_seq_err", "req_rx_rnr_retry_err", "req_rx_impl_nak_seq_err", "req_rx_rmt_acc_err",
		"req_rx_rmt_req_err", "req_rx_oper_err", "req_rx_cqe_err", "req_rx_cqe_flush", "req_rx_dup_response", "req_rx_inval_pkts",
		"req_tx_loc_acc_err", "req_tx_loc_oper_err", "req_tx_retry_excd_err", "resp_rx_dup_request", "resp_rx_outof_buf",
		"resp_rx_outouf_seq", "resp_rx_cqe_err", "resp_rx_cqe_flush", "resp_rx_loc_len_err", "resp_rx_inval_request",
		"resp_tx_rmt_acc_err", "resp_tx_loc_sgl_inv_err"),
)

// ionicStatistics are the driver's statistics of ionic's netdev.
var ionicStatistics = slices.Concat(
	[]row{
		volume("rx_packets", 64, ethernetPacketCount),
		volume("rx_bytes", 64, ethernetByteCount),
		volume("tx_packets", 64, ethernetPacketCount),
		volume("tx_bytes", 64, ethernetByteCount),
	},
	ofPF(append(counts(64, "frames_rx_bad_fcs", "link_down_count"), eachPriority("frames_rx_pri_%d", "frames_tx_pri_%d",
		"rx_pripause_%d_1us_count", "tx_pripause_%d_1us_count")...)),
)

// rxeHardware are the counters of Soft-RoCE (rxe_hw_counters.c): no bytes.
var rxeHardware = slices.Concat(
	[]row{
		volume("sent_pkts", 64, txPackets),
		volume("rcvd_pkts", 64, rxPackets),
	},
	counts(64, "duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err", "ack_deferred",
		"retry_exceeded_err", "retry_rnr_exceeded_err", "completer_retry_err", "send_err", "link_downed"),
	[]row{
		volume("rdma_sends", 64, txWrites),
		volume("rdma_recvs", 64, rxSends),
	},
)
