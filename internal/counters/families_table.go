package counters

// neutral are families that mean the same with every driver: traffic, errors
// and congestion. Rows of the drivers' counters say which of them they feed.
var neutral = []Family{
	{Name: "rdma_port_receive_bytes", Scope: Function, Tier: Traffic, Pod: "rdma_pod_receive_bytes", Help: "RDMA bytes that this function received, whichever counter its driver has for them."},
	{Name: "rdma_port_transmit_bytes", Scope: Function, Tier: Traffic, Pod: "rdma_pod_transmit_bytes", Help: "RDMA bytes that this function sent, whichever counter its driver has for them."},
	{Name: "rdma_port_receive_packets", Scope: Function, Tier: Traffic, Pod: "rdma_pod_receive_packets", Help: "RDMA packets that this function received, whichever counter its driver has for them."},
	{Name: "rdma_port_transmit_packets", Scope: Function, Tier: Traffic, Pod: "rdma_pod_transmit_packets", Help: "RDMA packets that this function sent, whichever counter its driver has for them."},
	{Name: "rdma_port_retransmit_timeouts", Scope: Function, Tier: Errors, Pod: "rdma_pod_retransmit_timeouts", Help: "Times an acknowledgement did not come in time and packets were sent again: the best single sign of silent loss."},
	{Name: "rdma_port_retransmitted_packets", Scope: Function, Tier: Errors, Pod: "rdma_pod_retransmitted_packets", Help: "Packets sent again; mlx5 does not count them."},
	{Name: "rdma_port_sequence_nak_received", Scope: Function, Tier: Errors, Pod: "rdma_pod_sequence_nak_received", Help: "Sequence-error NAKs received: a peer saw a gap in what we sent."},
	{Name: "rdma_port_out_of_sequence", Scope: Function, Tier: Errors, Pod: "rdma_pod_out_of_sequence", Help: "Packets received out of order: lost on the way, or overtaken where the fabric spreads packets over several paths."},
	{Name: "rdma_port_rnr_nak_received", Scope: Function, Tier: Errors, Pod: "rdma_pod_rnr_nak_received", Help: "Receiver-not-ready NAKs received: the peer's application posts receives too slowly."},
	{Name: "rdma_port_retries_exceeded", Scope: Function, Tier: Errors, Labels: []string{"reason"}, Pod: "rdma_pod_retries_exceeded", Help: "Times a queue pair gave up after its last retry, by the kind of retry (transport or rnr): fatal for the queue pair, and mostly for the job."},
	{Name: "rdma_port_ecn_marked_packets", Scope: PhysicalPort, Tier: Errors, Help: "Packets received that a switch marked as having met congestion."},
	{Name: "rdma_port_cnp_sent", Scope: PhysicalPort, Tier: Errors, Help: "Congestion notifications sent to peers whose packets came marked."},
	{Name: "rdma_port_cnp_handled", Scope: PhysicalPort, Tier: Errors, Help: "Congestion notifications received, upon which the sender slows down."},
}

// congestion are families of the physical port: flow control, discards, the
// link itself and PCIe below it.
var congestion = []Family{
	{Name: "rdma_rx_pause", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "PFC pause frames received: the peer, mostly a switch, tells us to stop sending at this priority, so the network cannot take our traffic; no packet is dropped."},
	{Name: "rdma_tx_pause", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "PFC pause frames sent: we tell the peer to stop sending at this priority, so our host, NIC or PCIe cannot take in what comes; no packet is dropped."},
	{Name: "rdma_rx_discards", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Packets received and dropped because the receive buffer of the port was full, by priority."},
	{Name: "rdma_tx_discards", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Packets dropped in place of being sent, because the link was down or blocked for too long; without a priority where the driver counts none, such as mlx5."},
	{Name: "rdma_port_priority_pause_frames", Scope: PhysicalPort, Tier: Errors, Labels: []string{"direction", "priority"}, Help: "PFC pause frames: received (rx) the peer tells us to stop, sent (tx) we tell the peer."},
	{Name: "rdma_port_priority_pause_duration_seconds", Scope: PhysicalPort, Tier: Errors, Labels: []string{"direction", "priority"}, Help: "Time that a priority was paused: by the peer (rx), or the peer by us (tx); its rate is the share of time."},
	{Name: "rdma_port_priority_pause_transitions", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Times a priority changed from sending to being paused by the peer."},
	{Name: "rdma_port_global_pause_frames", Scope: PhysicalPort, Tier: Errors, Labels: []string{"direction"}, Help: "Pause frames for all traffic of the link (IEEE 802.3x): received (rx) or sent (tx); there are none where PFC is on."},
	{Name: "rdma_port_pause_storm_events", Scope: PhysicalPort, Tier: Errors, Labels: []string{"severity"}, Help: "Times we paused the peer for so long that the card took note (warning), or stopped pausing to save the network (error)."},
	{Name: "rdma_port_priority_receive_bytes", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Bytes received at a priority, RDMA and other."},
	{Name: "rdma_port_priority_transmit_bytes", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Bytes sent at a priority, RDMA and other."},
	{Name: "rdma_port_priority_receive_packets", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Packets received at a priority, RDMA and other."},
	{Name: "rdma_port_priority_transmit_packets", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Packets sent at a priority, RDMA and other."},
	{Name: "rdma_port_priority_receive_discards", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Packets received and dropped for want of receive buffer at a priority; loss on a lossless priority means that PFC does not work."},
	{Name: "rdma_port_priority_discards", Scope: PhysicalPort, Tier: Errors, Labels: []string{"reason", "priority"}, Help: "Packets received at a priority and dropped: for want of host buffers (buffer), by the policy for congestion (congestion), or for want of receive buffer of the port (other)."},
	{Name: "rdma_port_priority_ecn_marked_packets", Scope: PhysicalPort, Tier: Errors, Labels: []string{"priority"}, Help: "Packets of a priority that the card itself marked as having met congestion."},
	{Name: "rdma_port_receive_discards", Scope: PhysicalPort, Tier: Errors, Help: "Packets received and dropped because the receive buffer of the port was full."},
	{Name: "rdma_port_transmit_discards", Scope: PhysicalPort, Tier: Errors, Help: "Packets dropped in place of being sent, because the link was down or blocked for too long."},
	{Name: "rdma_port_receive_buffer_pressure", Scope: PhysicalPort, Tier: Errors, Help: "Times the receive buffer of the port was filled beyond 85 percent."},
	{Name: "rdma_port_link_flaps", Scope: PhysicalPort, Tier: Errors, Help: "Times the link went down."},
	{Name: "rdma_port_phy_symbol_errors", Scope: PhysicalPort, Tier: Slow, Help: "Symbol errors that error correction did not correct: a bad cable, transceiver or port."},
	{Name: "rdma_port_phy_fec_corrections", Scope: PhysicalPort, Tier: Slow, Help: "Bits that forward error correction corrected: growth is normal, look at their share of eight times rdma_port_phy_receive_bytes_total."},
	{Name: "rdma_port_phy_fec_corrected_blocks", Scope: PhysicalPort, Tier: Slow, Help: "Blocks that forward error correction corrected: growth is normal."},
	{Name: "rdma_port_phy_fec_uncorrectable_blocks", Scope: PhysicalPort, Tier: Slow, Help: "Blocks that forward error correction could not correct: packets were lost."},
	{Name: "rdma_port_phy_lane_errors", Scope: PhysicalPort, Tier: Slow, Labels: []string{"lane"}, Help: "Bits in error on a lane before error correction, which tells a bad lane from a bad link."},
	{Name: "rdma_port_phy_receive_bytes", Scope: PhysicalPort, Tier: Slow, Help: "Bytes received on the link, idle symbols included: what errors are a share of."},
	{Name: "rdma_port_phy_crc_errors", Scope: PhysicalPort, Tier: Slow, Help: "Frames received with a wrong checksum: corrupted on this link, or at a switch that passes on before it has checked."},
	{Name: "rdma_port_module_events", Scope: PhysicalPort, Tier: Slow, Labels: []string{"reason"}, Help: "Events of the transceiver: its bus stuck, too hot, shorted, unplugged."},
	{Name: "rdma_device_pcie_stall_ratio", Kind: Gauge, Scope: PhysicalPort, Tier: Slow, Labels: []string{"direction"}, Help: "Share of the last second that the card had PCIe reads or writes to do and no credits for them."},
	{Name: "rdma_device_pcie_stall_seconds", Scope: PhysicalPort, Tier: Slow, Labels: []string{"direction"}, Help: "Seconds in which the card was kept from PCIe reads or writes for more than 30 percent of the time."},
	{Name: "rdma_device_pcie_buffer_overflow", Scope: PhysicalPort, Tier: Slow, Help: "Packets dropped because the buffer before PCIe was full: the host did not take them in."},
	{Name: "rdma_device_pcie_signal_integrity", Scope: PhysicalPort, Tier: Slow, Labels: []string{"direction"}, Help: "Errors of the PCIe link below the card: a bad slot, riser or card."},
	{Name: "rdma_device_out_of_buffer", Scope: Function, Tier: Slow, Help: "Packets dropped for want of posted receives, over all queues of the device, RDMA and other."},
	{Name: "rdma_device_steer_missed_packets", Scope: Function, Tier: Slow, Help: "Packets that no steering rule wanted, and that were dropped."},
	{Name: "rdma_port_saturated", Kind: Gauge, Scope: PhysicalPort, Tier: Errors, Labels: []string{"counter"}, Help: "Whether a counter stands at its largest value (1), where it stays until somebody resets it, so that what happens since is not counted."},
}

// connections are the families of ib_cm, in software and for every driver.
var connections = []Family{
	{Name: "rdma_port_cm_messages", Scope: Function, Tier: Slow, Labels: []string{"direction", "type"}, Help: "Messages of the connection manager; received rejections (rx, rej) are connections that failed. Programs that connect by other means, such as NCCL, leave no trace here, and a VF has none before its first message."},
	{Name: "rdma_port_cm_retries", Scope: Function, Tier: Slow, Labels: []string{"type"}, Help: "Messages of the connection manager that were sent again because nobody answered."},
	{Name: "rdma_port_cm_duplicates", Scope: Function, Tier: Slow, Labels: []string{"type"}, Help: "Messages of the connection manager that came more than once."},
}

// states are families of what a device and its ports are and how they are set
// up.
var states = []Family{
	{Name: "rdma_device_info", Kind: Info, Scope: WholeDevice, Tier: Slow, Labels: []string{"node_guid", "sys_image_guid", "fw_version", "driver", "board_id", "pci_address", "numa_node", "node_type", "protocol"}, Help: "What an RDMA device is; always 1, to be joined with other series by device."},
	{Name: "rdma_port_info", Kind: Info, Scope: Function, Tier: Slow, Labels: []string{"link_layer", "pf_device", "function", "vf_index", "rail"}, Help: "What a port is; always 1, to be joined with other series by device and port."},
	{Name: "rdma_port_state", Kind: Gauge, Scope: Function, Tier: Errors, Labels: []string{"state"}, Help: "Whether the port is in a logical state (1) or not (0), one series for each state; only ACTIVE carries traffic."},
	{Name: "rdma_port_physical_state", Kind: Gauge, Scope: Function, Tier: Errors, Labels: []string{"state"}, Help: "Whether the port is in a physical state (1) or not (0), one series for each state; LINK_UP is what it should be."},
	{Name: "rdma_port_speed_bytes_per_second", Kind: Gauge, Scope: Function, Tier: Slow, Help: "Speed that the link runs at; a VF shows that of its PF's port."},
	{Name: "rdma_vport_speed_mbps", Kind: Gauge, Scope: Function, Tier: Slow, Help: "Speed that the link runs at in megabits a second, under the name that others use; a VF shows that of its PF's port."},
	{Name: "rdma_port_max_speed_bytes_per_second", Kind: Gauge, Scope: Function, Tier: Slow, Help: "Speed that the port could run at."},
	{Name: "rdma_port_width_lanes", Kind: Gauge, Scope: Function, Tier: Slow, Help: "Lanes that the link runs on."},
	{Name: "rdma_port_mtu_bytes", Kind: Gauge, Scope: Function, Tier: Slow, Labels: []string{"kind"}, Help: "MTU of the port: of its netdev (active), the largest that the netdev could have (max), and the largest RDMA payload that follows (rdma)."},
	{Name: "rdma_port_gids", Kind: Gauge, Scope: Function, Tier: Slow, Help: "Entries of the port's GID table that are in use; without one RoCE cannot connect."},
	{Name: "rdma_device_resources", Kind: Gauge, Scope: WholeDevice, Tier: Slow, Labels: []string{"type"}, Help: "Objects that exist on the device, of processes and of the kernel: queue pairs (qp), completion queues (cq), memory regions (mr), protection domains (pd), connections (cm_id), user contexts (ctx), shared receive queues (srq)."},
	{Name: "rdma_port_traffic_class", Kind: Gauge, Scope: Function, Tier: Slow, Help: "Traffic class that the driver forces on all RoCE traffic of the port (tc/PORT/traffic_class of NVIDIA's driver package); absent where it forces none."},
	{Name: "rdma_port_trust_mode", Kind: Gauge, Scope: PhysicalPort, Tier: Slow, Labels: []string{"mode"}, Help: "By what the port sorts incoming packets into priorities, pcp or dscp; always 1."},
	{Name: "rdma_port_pfc_enabled", Kind: Gauge, Scope: PhysicalPort, Tier: Slow, Labels: []string{"priority"}, Help: "Whether PFC is on for a priority (1), which makes it lossless."},
	{Name: "rdma_port_ecn_enabled", Kind: Gauge, Scope: PhysicalPort, Tier: Slow, Labels: []string{"role", "priority"}, Help: "Whether RoCE congestion control is on for a priority (1), as notification point (np) and as reaction point (rp)."},
	{Name: "rdma_port_roce_mode", Kind: Gauge, Scope: Function, Tier: Slow, Labels: []string{"mode"}, Help: "RoCE version that rdma_cm connects with; always 1."},
	{Name: "rdma_system_netns_mode", Kind: Gauge, Scope: WholeNode, Tier: Slow, Labels: []string{"mode"}, Help: "Whether network namespaces share all RDMA devices (shared) or each has its own (exclusive); always 1."},
	{Name: "rdma_system_copy_on_fork", Kind: Gauge, Scope: WholeNode, Tier: Slow, Help: "Whether the kernel copies registered memory when a process forks (1)."},
}

// health are families of devlink and of events.
var health = []Family{
	{Name: "rdma_device_health_state", Kind: Gauge, Scope: WholeDevice, Tier: Slow, Labels: []string{"reporter", "state"}, Help: "State of a health reporter of the driver, healthy or error; always 1."},
	{Name: "rdma_devlink_health_reporter_errors", Scope: WholeDevice, Tier: Slow, Labels: []string{"reporter"}, Help: "Errors that a health reporter of the driver saw."},
	{Name: "rdma_devlink_health_reporter_recoveries", Scope: WholeDevice, Tier: Slow, Labels: []string{"reporter"}, Help: "Errors that a health reporter of the driver recovered from."},
	{Name: "rdma_device_async_events", Scope: WholeDevice, Tier: Errors, Labels: []string{"event"}, Help: "Events of the RDMA device that the kernel told of since the exporter runs (Linux 6.12), by the kernel's names for them: it came (REGISTER), went (UNREGISTER), was renamed (RENAME), got or lost a netdev (NETDEV_ATTACH, NETDEV_DETACH)."},
}
