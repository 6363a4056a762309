package top

// The families that are no counters.
const (
	sampleAge         = "rdma_exporter_sample_age_seconds"
	buildInfo         = "rdma_exporter_build_info"
	collectDuration   = "rdma_exporter_collect_duration_seconds"
	quarantined       = "rdma_exporter_device_quarantined"
	deviceInfo        = "rdma_device_info"
	deviceResources   = "rdma_device_resources"
	portInfo          = "rdma_port_info"
	portState         = "rdma_port_state"
	portPhysicalState = "rdma_port_physical_state"
	portSpeed         = "rdma_port_speed_bytes_per_second"
	podInfo           = "rdma_pod_info"
	podDeviceInfo     = "rdma_pod_device_info"
	podQueuePairs     = "rdma_pod_qps"
)

// quantities says of which counters the numbers of a row are made.
var quantities = []*quantity{
	{
		of: func(r *Rates) *Rate { return &r.Receive }, isTraffic: true,
		terms: []term{{families("rdma_port_receive_bytes_total"), families("rdma_port_rcv_data_bytes_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.Transmit }, isTraffic: true,
		terms: []term{{families("rdma_port_transmit_bytes_total"), families("rdma_port_xmit_data_bytes_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.ReceivePackets }, isTraffic: true,
		terms: []term{{families("rdma_port_receive_packets_total"), families("rdma_port_rcv_packets_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.TransmitPackets }, isTraffic: true,
		terms: []term{{families("rdma_port_transmit_packets_total"), families("rdma_port_xmit_packets_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.PauseReceived }, isRatio: true, label: [2]string{"direction", "rx"},
		terms: []term{{families("rdma_port_priority_pause_duration_seconds_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.PauseSent }, isRatio: true, label: [2]string{"direction", "tx"},
		terms: []term{{families("rdma_port_priority_pause_duration_seconds_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.PauseFrames },
		terms: []term{
			{families("rdma_port_priority_pause_frames_total")},
			{families("rdma_port_global_pause_frames_total")},
		},
	},
	{
		of:    func(r *Rates) *Rate { return &r.TransmitWait },
		terms: []term{{families("rdma_port_xmit_wait_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.Retransmits },
		terms: []term{
			{
				families("rdma_port_retransmit_timeouts_total"), families("rdma_local_ack_timeout_err_total"),
				families("rdma_port_retransmitted_packets_total"),
			},
			{families("rdma_port_sequence_nak_received_total"), families("rdma_packet_seq_err_total")},
			{families("rdma_implied_nak_seq_err_total")},
			retriesExceeded,
		},
	},
	{
		of:    func(r *Rates) *Rate { return &r.RetriesExceeded },
		terms: []term{retriesExceeded},
	},
	{
		of:    func(r *Rates) *Rate { return &r.OutOfSequence },
		terms: []term{{families("rdma_port_out_of_sequence_total"), families("rdma_out_of_sequence_total")}},
	},
	{
		of:    func(r *Rates) *Rate { return &r.ReceiverNotReady },
		terms: []term{{families("rdma_port_rnr_nak_received_total"), families("rdma_rnr_nak_retry_err_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.ECNMarked },
		terms: []term{{
			families("rdma_port_ecn_marked_packets_total"), families("rdma_np_ecn_marked_roce_packets_total"),
			families("rdma_cc_rx_ce_pkts_total"),
		}},
	},
	{
		of: func(r *Rates) *Rate { return &r.CNPSent },
		terms: []term{{
			families("rdma_port_cnp_sent_total"), families("rdma_np_cnp_sent_total"),
			families("rdma_cc_tx_cnp_pkts_total"),
		}},
	},
	{
		of: func(r *Rates) *Rate { return &r.CNPHandled },
		terms: []term{{
			families("rdma_port_cnp_handled_total"), families("rdma_rp_cnp_handled_total"),
			families("rdma_cc_rx_cnp_pkts_total"),
		}},
	},
	{
		of: func(r *Rates) *Rate { return &r.Discards },
		terms: []term{
			{families("rdma_port_receive_discards_total"), families("rdma_port_priority_receive_discards_total")},
			{families("rdma_port_transmit_discards_total"), families("rdma_port_xmit_discards_total")},
		},
	},
	{
		of:    func(r *Rates) *Rate { return &r.OutOfBuffer },
		terms: []term{{families("rdma_out_of_buffer_total")}},
	},
	{
		of: func(r *Rates) *Rate { return &r.Errors },
		terms: []term{
			{
				choice{add: []string{"rdma_req_cqe_error_total"}, less: []string{"rdma_req_cqe_flush_error_total"}},
				families("rdma_req_remote_invalid_request_total", "rdma_req_remote_access_errors_total"),
			},
			{
				choice{add: []string{"rdma_resp_cqe_error_total"}, less: []string{"rdma_resp_cqe_flush_error_total"}},
				families("rdma_resp_local_length_error_total", "rdma_resp_remote_access_errors_total"),
			},
			{families("rdma_rx_icrc_encapsulated_total")},
			{families("rdma_port_phy_crc_errors_total")},
			{families("rdma_port_phy_symbol_errors_total"), families("rdma_symbol_error_total")},
			{families("rdma_port_phy_fec_uncorrectable_blocks_total")},
			{families("rdma_port_link_flaps_total"), families("rdma_link_downed_total")},
			{families("rdma_link_error_recovery_total")},
			{families("rdma_port_rcv_errors_total")},
			{families("rdma_local_link_integrity_errors_total")},
			{families("rdma_excessive_buffer_overrun_errors_total")},
		},
	},
}

// retriesExceeded ended a queue pair each.
var retriesExceeded = term{
	families("rdma_port_retries_exceeded_total"),
	families("rdma_req_transport_retries_exceeded_total", "rdma_req_rnr_retries_exceeded_total"),
}

// trafficFamilies are those of which the readings of a card are known.
var trafficFamilies = familiesOf(func(q *quantity) bool { return q.isTraffic })
