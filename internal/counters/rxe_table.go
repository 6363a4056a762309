package counters

// rxe is drivers/infiniband/sw/rxe/rxe_hw_counters.c: software RDMA, 64 bits
// wide; bytes since Linux 7.
var rxe = set{source: statistics, drivers: []string{"rxe"}, raw: true, rows: []row{
	{key: "sent_pkts", tier: Traffic, feeds: []string{"rdma_port_transmit_packets"}, help: "RoCE packets sent."},
	{key: "rcvd_pkts", tier: Traffic, feeds: []string{"rdma_port_receive_packets"}, help: "RoCE packets received."},
	{key: "sent_bytes", tier: Traffic, feeds: []string{"rdma_port_transmit_bytes"}, help: "Bytes of RoCE packets sent."},
	{key: "rcvd_bytes", tier: Traffic, feeds: []string{"rdma_port_receive_bytes"}, help: "Bytes of RoCE packets received."},
	{key: "duplicate_request", tier: Errors},
	{key: "out_of_seq_request", tier: Errors, feeds: []string{"rdma_port_out_of_sequence"}, help: "Requests that the responder received out of order."},
	{key: "rcvd_rnr_err", tier: Errors, feeds: []string{"rdma_port_rnr_nak_received"}, help: "Receiver-not-ready NAKs received: the peer's application posts receives too slowly."},
	{key: "send_rnr_err", tier: Errors, help: "Receiver-not-ready NAKs sent: our application posts receives too slowly."},
	{key: "rcvd_seq_err", tier: Errors, feeds: []string{"rdma_port_sequence_nak_received"}, help: "Sequence-error NAKs received: the peer saw a gap in what we sent."},
	{key: "ack_deferred", tier: Errors, help: "Times the handling of an acknowledgement was left to a worker."},
	{key: "retry_exceeded_err", tier: Errors, feeds: []string{"rdma_port_retries_exceeded transport"}, help: "Times the requester gave up after its last retry: fatal for the queue pair."},
	{key: "retry_rnr_exceeded_err", tier: Errors, feeds: []string{"rdma_port_retries_exceeded rnr"}, help: "Times the requester gave up after its last receiver-not-ready retry: fatal for the queue pair."},
	{key: "completer_retry_err", tier: Errors, help: "Times the requester began to send again."},
	{key: "send_err", tier: Errors, help: "Packets that the netdev below did not take."},
	{key: "link_downed", tier: Errors, feeds: []string{"rdma_port_link_flaps"}},
	{key: "rdma_sends", tier: Errors, help: "SEND requests sent."},
	{key: "rdma_recvs", tier: Errors, help: "SEND requests received."},
}}
