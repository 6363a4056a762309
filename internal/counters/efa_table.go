package counters

// efa is drivers/infiniband/hw/efa/efa_verbs.c, 64 bits wide.
var efa = set{source: statistics, drivers: []string{"efa"}, raw: true, rows: []row{
	{key: "tx_bytes", tier: Traffic, feeds: []string{"rdma_port_transmit_bytes"}},
	{key: "tx_pkts", tier: Traffic, feeds: []string{"rdma_port_transmit_packets"}},
	{key: "rx_bytes", tier: Traffic, feeds: []string{"rdma_port_receive_bytes"}},
	{key: "rx_pkts", tier: Traffic, feeds: []string{"rdma_port_receive_packets"}},
	{key: "rx_drops", tier: Errors, help: "Packets received and dropped, mostly because no receive was posted."},
	{key: "send_bytes", tier: Errors, help: "Bytes of SEND requests that were posted."},
	{key: "send_wrs", tier: Errors, help: "SEND requests that were posted."},
	{key: "recv_bytes", tier: Errors, help: "Bytes received into posted receives."},
	{key: "recv_wrs", tier: Errors, help: "Receives that were completed."},
	{key: "rdma_read_wrs", tier: Errors, help: "RDMA READ requests that were posted."},
	{key: "rdma_read_bytes", tier: Errors, help: "Bytes that RDMA READs of ours brought."},
	{key: "rdma_read_wr_err", tier: Errors, help: "RDMA READ requests of ours that failed."},
	{key: "rdma_read_resp_bytes", tier: Errors, help: "Bytes that peers read from us by RDMA READ."},
	{key: "rdma_write_wrs", tier: Errors, help: "RDMA WRITE requests that were posted."},
	{key: "rdma_write_bytes", tier: Errors, help: "Bytes that RDMA WRITEs of ours sent."},
	{key: "rdma_write_wr_err", tier: Errors, help: "RDMA WRITE requests of ours that failed."},
	{key: "rdma_write_recv_bytes", tier: Errors, help: "Bytes that peers wrote to us by RDMA WRITE."},
	{key: "retrans_bytes", tier: Errors, help: "Bytes sent again."},
	{key: "retrans_pkts", tier: Errors, feeds: []string{"rdma_port_retransmitted_packets"}, help: "Packets sent again."},
	{key: "retrans_timeout_events", tier: Errors, feeds: []string{"rdma_port_retransmit_timeouts"}, help: "Times a retransmission timer ran out."},
	{key: "unresponsive_remote_events", tier: Errors, help: "Times a peer stopped answering."},
	{key: "impaired_remote_conn_events", tier: Errors, help: "Times the connection to a peer became bad."},
}}

// efaDevice is what efa counts of its administration commands.
var efaDevice = set{source: deviceFiles, drivers: []string{"efa"}, raw: true, rows: []row{
	{key: "submitted_cmds", scope: WholeDevice, tier: Slow, help: "Administration commands given to the device."},
	{key: "completed_cmds", scope: WholeDevice, tier: Slow, help: "Administration commands that the device completed."},
	{key: "cmds_err", scope: WholeDevice, tier: Slow, help: "Administration commands that failed."},
	{key: "no_completion_cmds", scope: WholeDevice, tier: Slow, help: "Administration commands that the device never completed."},
	{key: "keep_alive_rcvd", scope: WholeDevice, tier: Slow, help: "Signs of life received from the device."},
	{key: "alloc_pd_err", scope: WholeDevice, tier: Slow, help: "Protection domains that could not be made."},
	{key: "create_qp_err", scope: WholeDevice, tier: Slow, help: "Queue pairs that could not be made."},
	{key: "create_cq_err", scope: WholeDevice, tier: Slow, help: "Completion queues that could not be made."},
	{key: "reg_mr_err", scope: WholeDevice, tier: Slow, help: "Memory regions that could not be registered."},
	{key: "alloc_ucontext_err", scope: WholeDevice, tier: Slow, help: "User contexts that could not be made."},
	{key: "create_ah_err", scope: WholeDevice, tier: Slow, help: "Address handles that could not be made."},
	{key: "mmap_err", scope: WholeDevice, tier: Slow, help: "Mappings of device memory to a process that failed."},
}}
