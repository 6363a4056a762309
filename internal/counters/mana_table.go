package counters

// mana is drivers/infiniband/hw/mana/counters.c, 64 bits wide.
var mana = set{source: statistics, drivers: []string{"mana"}, raw: true, rows: []row{
	{key: "requester_timeout", tier: Errors, feeds: []string{"rdma_port_retransmit_timeouts"}, help: "Times the requester's acknowledgement timer ran out: a sign of silent loss."},
	{key: "requester_oos_nak", tier: Errors, feeds: []string{"rdma_port_sequence_nak_received"}, help: "Sequence-error NAKs that the requester received: the peer saw a gap in what we sent."},
	{key: "requester_rnr_nak", tier: Errors, feeds: []string{"rdma_port_rnr_nak_received"}, help: "Receiver-not-ready NAKs that the requester received: the peer's application posts receives too slowly."},
	{key: "responder_rnr_nak", tier: Errors, help: "Receiver-not-ready NAKs that the responder sent: our application posts receives too slowly."},
	{key: "responder_oos", tier: Errors, feeds: []string{"rdma_port_out_of_sequence"}, help: "Packets that the responder received out of order."},
	{key: "responder_dup_request", tier: Errors, help: "Requests that the responder had executed before."},
	{key: "requester_implicit_nak", tier: Errors, help: "Times the requester got an acknowledgement beyond the response that it waits for, so that response was lost."},
	{key: "requester_readresp_psn_mismatch", tier: Errors, help: "READ responses that came out of order."},
	{key: "nak_inv_req", tier: Errors, help: "NAKs for invalid requests."},
	{key: "nak_access_error", tier: Errors, help: "NAKs for a wrong key, address or permission."},
	{key: "nak_opp_error", tier: Errors, help: "NAKs for operations that could not be completed."},
	{key: "nak_inv_read", tier: Errors, help: "NAKs for invalid READ requests."},
	{key: "responder_local_len_error", tier: Errors, help: "Times the responder found a message longer than the receive buffer."},
	{key: "requestor_local_prot_error", tier: Errors, help: "Local protection errors of the requester: a buffer that its memory region does not cover."},
	{key: "responder_rem_access_error", tier: Errors, help: "Requests that the responder refused for a wrong key, address or permission."},
	{key: "responder_local_qp_error", tier: Errors, help: "Local queue pair errors of the responder."},
	{key: "responder_malformed_wqe", tier: Errors, help: "Receive work requests whose form the card did not accept."},
	{key: "general_hw_error", tier: Errors, help: "Errors of the hardware."},
	{key: "requester_rnr_nak_retries_exceeded", tier: Errors, feeds: []string{"rdma_port_retries_exceeded rnr"}, help: "Times the requester gave up after its last receiver-not-ready retry: fatal for the queue pair."},
	{key: "requester_retries_exceeded", tier: Errors, feeds: []string{"rdma_port_retries_exceeded transport"}, help: "Times the requester gave up after its last retry: fatal for the queue pair."},
	{key: "total_fatal_error", tier: Errors, help: "Errors that ended a queue pair."},
	{key: "received_cnps", tier: Errors, feeds: []string{"rdma_port_cnp_handled"}, help: "Congestion notifications received."},
	{key: "num_qps_congested", kind: Gauge, tier: Errors, help: "Queue pairs that are slowed down by congestion control now."},
	{key: "rate_inc_events", tier: Errors, help: "Times congestion control let a sender go faster again."},
	{key: "num_qps_recovered", tier: Errors, help: "Queue pairs that congestion control let go at full speed again."},
	{key: "current_rate", kind: Gauge, tier: Errors, help: "Rate that congestion control allows now, in the card's own unit."},
	{key: "dup_rx_requests", tier: Errors, help: "Requests received that had been received before."},
	{key: "tx_bytes", tier: Traffic, feeds: []string{"rdma_port_transmit_bytes"}},
	{key: "rx_bytes", tier: Traffic, feeds: []string{"rdma_port_receive_bytes"}},
	{key: "rx_send_requests", tier: Errors, help: "SEND requests received."},
	{key: "rx_write_requests", tier: Errors},
	{key: "rx_read_requests", tier: Errors},
	{key: "tx_packets", tier: Traffic, feeds: []string{"rdma_port_transmit_packets"}, help: "RDMA packets sent by this function."},
	{key: "rx_packets", tier: Traffic, feeds: []string{"rdma_port_receive_packets"}, help: "RDMA packets received by this function."},
}}

// manaDevice is what mana counts of the whole card.
var manaDevice = set{source: deviceFiles, drivers: []string{"mana"}, raw: true, rows: []row{
	{key: "sent_cnps", scope: WholeDevice, tier: Errors, feeds: []string{"rdma_port_cnp_sent"}, help: "Congestion notifications sent to peers, by the whole card."},
	{key: "received_ecns", scope: WholeDevice, tier: Errors, feeds: []string{"rdma_port_ecn_marked_packets"}, help: "Packets received that a switch marked as having met congestion, by the whole card."},
	{key: "received_cnp_count", scope: WholeDevice, tier: Errors, help: "Congestion notifications received, by the whole card."},
	{key: "qp_congested_events", scope: WholeDevice, tier: Errors, help: "Times congestion control slowed a queue pair down, on the whole card."},
	{key: "qp_recovered_events", scope: WholeDevice, tier: Errors, help: "Times congestion control let a queue pair go at full speed again, on the whole card."},
	{key: "rate_inc_events", scope: WholeDevice, tier: Errors},
}}
