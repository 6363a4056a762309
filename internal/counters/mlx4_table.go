package counters

// mlx4 is diag_basic and diag_ext of drivers/infiniband/hw/mlx4/main.c: 32 bits
// that wrap, of the responder (rq) and requester (sq). Firmware that does not
// count by port has them for the whole device.
var mlx4 = set{source: statistics, drivers: []string{"mlx4"}, raw: true, rows: []row{
	{key: "rq_num_lle", bits: 32, tier: Errors, help: "Local length errors of the responder: a message longer than the receive buffer."},
	{key: "sq_num_lle", bits: 32, tier: Errors, help: "Local length errors of the requester."},
	{key: "rq_num_lqpoe", bits: 32, tier: Errors, help: "Local queue pair operation errors of the responder."},
	{key: "sq_num_lqpoe", bits: 32, tier: Errors, help: "Local queue pair operation errors of the requester."},
	{key: "rq_num_lpe", bits: 32, tier: Errors, help: "Local protection errors of the responder: a buffer that its memory region does not cover."},
	{key: "sq_num_lpe", bits: 32, tier: Errors, help: "Local protection errors of the requester: a buffer that its memory region does not cover."},
	{key: "rq_num_wrfe", bits: 32, tier: Errors, help: "Receives flushed when a queue pair left service: normal at the end of a job."},
	{key: "sq_num_wrfe", bits: 32, tier: Errors, help: "Sends flushed when a queue pair left service: normal at the end of a job."},
	{key: "sq_num_mwbe", bits: 32, tier: Errors, help: "Memory window bind errors of the requester."},
	{key: "sq_num_bre", bits: 32, tier: Errors, help: "Bad responses that the requester received."},
	{key: "sq_num_rire", bits: 32, tier: Errors, help: "Invalid-request NAKs that the requester received: the peer did not accept an operation."},
	{key: "rq_num_rire", bits: 32, tier: Errors, help: "Invalid requests that the responder refused."},
	{key: "sq_num_rae", bits: 32, tier: Errors, help: "Remote-access NAKs that the requester received: a wrong key, address or permission at the peer."},
	{key: "rq_num_rae", bits: 32, tier: Errors, help: "Requests that the responder refused for a wrong key, address or permission."},
	{key: "sq_num_roe", bits: 32, tier: Errors, help: "Remote operation errors that the requester received: the peer could not complete an operation."},
	{key: "sq_num_tree", bits: 32, tier: Errors, feeds: []string{"rdma_port_retries_exceeded transport"}, help: "Times the requester gave up after its last transport retry: fatal for the queue pair, and mostly for the job."},
	{key: "sq_num_rree", bits: 32, tier: Errors, feeds: []string{"rdma_port_retries_exceeded rnr"}, help: "Times the requester gave up after its last receiver-not-ready retry: fatal for the queue pair, and mostly for the job."},
	{key: "rq_num_rnr", bits: 32, tier: Errors, help: "Receiver-not-ready NAKs that the responder sent: our application posts receives too slowly."},
	{key: "sq_num_rnr", bits: 32, tier: Errors, feeds: []string{"rdma_port_rnr_nak_received"}, help: "Receiver-not-ready NAKs that the requester received: the peer's application posts receives too slowly."},
	{key: "rq_num_oos", bits: 32, tier: Errors, feeds: []string{"rdma_port_out_of_sequence"}, help: "Packets that the responder received out of order."},
	{key: "sq_num_oos", bits: 32, tier: Errors, feeds: []string{"rdma_port_sequence_nak_received"}, help: "Sequence-error NAKs that the requester received: the peer saw a gap in what we sent."},
	{key: "rq_num_dup", bits: 32, tier: Errors, help: "Requests that the responder had executed before: the peer sent them again."},
	{key: "sq_num_to", bits: 32, tier: Errors, feeds: []string{"rdma_port_retransmit_timeouts"}, help: "Times the requester's acknowledgement timer ran out: a sign of silent loss."},
}}

// mlx4Device is what mlx4 counts of a whole device only.
var mlx4Device = set{source: deviceFiles, drivers: []string{"mlx4"}, raw: true, rows: []row{
	{key: "num_cqovf", bits: 32, scope: WholeDevice, tier: Errors, help: "Completion queues that overflowed: the application did not poll in time."},
	{key: "rq_num_udsdprd", bits: 32, scope: WholeDevice, tier: Errors, help: "Unreliable datagrams dropped silently because no receive was posted."},
}}
