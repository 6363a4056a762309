package counters

// mlx5 is drivers/infiniband/hw/mlx5/counters.c. What comes from a Q counter is
// 32 bits wide and wraps; congestion and port counters have 64.
var mlx5 = set{source: statistics, drivers: []string{"mlx5"}, raw: true, rows: []row{
	{key: "rx_write_requests", bits: 32, tier: Errors, help: "RDMA WRITE requests received by this function's queue pairs; requests, not bytes."},
	{key: "rx_read_requests", bits: 32, tier: Errors, help: "RDMA READ requests received by this function's queue pairs."},
	{key: "rx_atomic_requests", bits: 32, tier: Errors, help: "Atomic requests received by this function's queue pairs."},
	{key: "rx_dct_connect", bits: 32, tier: Errors, help: "Connect requests received by dynamically connected targets."},
	{key: "out_of_buffer", bits: 32, tier: Errors, help: "Packets dropped because the queue pair had no receive posted: the application is slow, the network is not at fault."},
	{key: "out_of_sequence", bits: 32, tier: Errors, feeds: []string{"rdma_port_out_of_sequence"}, help: "Packets that the responder received out of order: lost on the way, or overtaken where the fabric spreads packets over several paths."},
	{key: "duplicate_request", bits: 32, tier: Errors, help: "Request packets that were executed before: the peer sent them again because an acknowledgement was lost or late."},
	{key: "rnr_nak_retry_err", bits: 32, tier: Errors, feeds: []string{"rdma_port_rnr_nak_received"}, pod: true, help: "Receiver-not-ready NAKs received that left retries: the peer's application posts receives too slowly, and we wait."},
	{key: "packet_seq_err", bits: 32, tier: Errors, feeds: []string{"rdma_port_sequence_nak_received"}, pod: true, help: "Sequence-error NAKs that the requester received with retries left: the peer saw a gap in what we sent."},
	{key: "implied_nak_seq_err", bits: 32, tier: Errors, help: "Times the requester got an acknowledgement beyond the READ or atomic response that it waits for, so that response was lost."},
	{key: "local_ack_timeout_err", bits: 32, tier: Errors, feeds: []string{"rdma_port_retransmit_timeouts"}, pod: true, help: "Times the acknowledgement timer of an RC, XRC or DCT queue pair ran out on our side with retries left: the best single sign of silent loss."},
	{key: "resp_local_length_error", bits: 32, tier: Errors, help: "Times the responder found a message longer than the receive buffer: a fault of the application."},
	{key: "resp_cqe_error", bits: 32, tier: Errors, help: "Completions with error on the responder, flushed ones included."},
	{key: "req_cqe_error", bits: 32, tier: Errors, help: "Completions with error on the requester, flushed ones included."},
	{key: "req_remote_invalid_request", bits: 32, tier: Errors, help: "Invalid-request NAKs that the requester received: the peer did not accept an operation."},
	{key: "req_remote_access_errors", bits: 32, tier: Errors, help: "Remote-access NAKs that the requester received: a wrong key, address or permission at the peer."},
	{key: "resp_remote_access_errors", bits: 32, tier: Errors, help: "Requests that the responder refused for a wrong key, address or permission."},
	{key: "resp_cqe_flush_error", bits: 32, tier: Errors, help: "Receives flushed when a queue pair left service: normal at the end of a job, a symptom otherwise, never a cause."},
	{key: "req_cqe_flush_error", bits: 32, tier: Errors, help: "Sends flushed when a queue pair left service: normal at the end of a job, a symptom otherwise, never a cause."},
	{key: "req_transport_retries_exceeded", bits: 32, tier: Errors, feeds: []string{"rdma_port_retries_exceeded transport"}, help: "Times the requester gave up after its last transport retry: fatal for the queue pair, and mostly for the job."},
	{key: "req_rnr_retries_exceeded", bits: 32, tier: Errors, feeds: []string{"rdma_port_retries_exceeded rnr"}, help: "Times the requester gave up after its last receiver-not-ready retry: fatal for the queue pair, and mostly for the job."},
	{key: "roce_adp_retrans", bits: 32, tier: Errors, help: "Adaptive retransmissions of RoCE, which come sooner than the timeout that the application set."},
	{key: "roce_adp_retrans_to", bits: 32, tier: Errors, help: "Times RoCE traffic reached its timeout because of adaptive retransmission."},
	{key: "roce_slow_restart", bits: 32, tier: Errors, help: "Times RoCE slow restart was used, which sends slowly after a pause or loss."},
	{key: "roce_slow_restart_cnps", bits: 32, tier: Errors, help: "Times RoCE slow restart made a congestion notification by itself: rdma_rp_cnp_handled_total then grows without congestion in the network."},
	{key: "roce_slow_restart_trans", bits: 32, tier: Errors, help: "Times RoCE changed to the state of slow restart."},
	{key: "rp_cnp_ignored", scope: PhysicalPort, tier: Errors, help: "Congestion notifications received and ignored: none while RoCE congestion control is set up here, so growth means it is not."},
	{key: "rp_cnp_handled", scope: PhysicalPort, tier: Errors, feeds: []string{"rdma_port_cnp_handled"}, help: "Congestion notifications that made the sender slow down: congestion control at work."},
	{key: "np_ecn_marked_roce_packets", scope: PhysicalPort, tier: Errors, feeds: []string{"rdma_port_ecn_marked_packets"}, help: "RoCE v2 packets received that a switch marked as having met congestion (ECN 11)."},
	{key: "np_cnp_sent", scope: PhysicalPort, tier: Errors, feeds: []string{"rdma_port_cnp_sent"}, help: "Congestion notifications sent to peers: far fewer than marked packets, because there is a shortest time between two."},
	{key: "rx_icrc_encapsulated", scope: PhysicalPort, tier: Errors, help: "RoCE packets received with a wrong invariant checksum: corrupted, or rewritten by something in between; none on a sound network."},
	{key: "cc_rx_ce_pkts", name: "rdma_cc_rx_ce_pkts", tier: Errors, feeds: nil, help: "Packets of this function received with a congestion mark; an optional counter, there while somebody has switched it on."},
	{key: "cc_rx_cnp_pkts", tier: Errors, help: "Congestion notifications that this function received; an optional counter, there while somebody has switched it on."},
	{key: "cc_tx_cnp_pkts", tier: Errors, help: "Congestion notifications that this function sent; an optional counter, there while somebody has switched it on."},
	{key: "rdma_tx_packets", tier: Errors, apart: []string{"rdma_port_transmit_packets"}, help: "RDMA packets that this function sent; an optional counter, there while somebody has switched it on."},
	{key: "rdma_tx_bytes", tier: Errors, apart: []string{"rdma_port_transmit_bytes"}, help: "RDMA bytes that this function sent; an optional counter, there while somebody has switched it on."},
	{key: "rdma_rx_packets", tier: Errors, apart: []string{"rdma_port_receive_packets"}, help: "RDMA packets that this function received; an optional counter, there while somebody has switched it on."},
	{key: "rdma_rx_bytes", tier: Errors, apart: []string{"rdma_port_receive_bytes"}, help: "RDMA bytes that this function received; an optional counter, there while somebody has switched it on."},
}}

// mlx5Representor is what an eswitch counts of the function behind one of its
// ports, the Q counters of mlx5 under names that begin with vport_.
var mlx5Representor = representorSet(mlx5)

func representorSet(s set) set {
	r := set{source: s.source, drivers: s.drivers, raw: true}
	for _, counter := range s.rows {
		if counter.bits != 32 {
			continue
		}
		r.rows = append(r.rows, row{
			key: "vport_" + counter.key, bits: counter.bits, tier: Slow,
			help: "Seen from the eswitch, of the function behind this port. " + counter.help,
		})
	}
	return r
}
