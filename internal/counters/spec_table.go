package counters

// specNames are the names that the project's specification asks for: rdma_ and
// the name, and _total behind that of a counter.
const specNames = `rx_write_requests rx_read_requests rx_atomic_requests rx_dct_connect out_of_buffer
	out_of_sequence duplicate_request rnr_nak_retry_err packet_seq_err implied_nak_seq_err local_ack_timeout_err
	resp_local_length_error resp_cqe_error req_cqe_error req_remote_invalid_request req_remote_access_errors
	resp_remote_access_errors resp_cqe_flush_error req_cqe_flush_error roce_adp_retrans roce_adp_retrans_to
	roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_ignored rp_cnp_handled
	np_ecn_marked_roce_packets np_cnp_sent rx_icrc_encapsulated vport_speed_mbps rx_discards tx_discards
	rx_pause tx_pause`
