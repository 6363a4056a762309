package counters

// bnxtNetdev is what drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c has of
// interest for RDMA.
var bnxtNetdev = set{source: driverStats, drivers: []string{"bnxt_re"}, rows: []row{
	{key: "rx_pfc_ena_frames_pri#", tier: Errors, feeds: []string{"rdma_rx_pause #", "rdma_port_priority_pause_frames rx #"}},
	{key: "tx_pfc_ena_frames_pri#", tier: Errors, feeds: []string{"rdma_tx_pause #", "rdma_port_priority_pause_frames tx #"}},
	{key: "pfc_pri#_rx_duration_us", scale: 1e-6, tier: Errors, feeds: []string{"rdma_port_priority_pause_duration_seconds rx #"}},
	{key: "pfc_pri#_tx_duration_us", scale: 1e-6, tier: Errors, feeds: []string{"rdma_port_priority_pause_duration_seconds tx #"}},
	{key: "pfc_pri#_rx_transitions", tier: Errors, feeds: []string{"rdma_port_priority_pause_transitions #"}},
	{key: "rx_bytes_pri#", tier: Errors, feeds: []string{"rdma_port_priority_receive_bytes #"}},
	{key: "tx_bytes_pri#", tier: Errors, feeds: []string{"rdma_port_priority_transmit_bytes #"}},
	{key: "rx_packets_pri#", tier: Errors, feeds: []string{"rdma_port_priority_receive_packets #"}},
	{key: "tx_packets_pri#", tier: Errors, feeds: []string{"rdma_port_priority_transmit_packets #"}},
	{key: "rx_discard_packets_cos#", tier: Errors, feeds: []string{"rdma_rx_discards #", "rdma_port_priority_receive_discards #", "rdma_port_priority_discards other #"}},
	{key: "rx_pause_frames", tier: Errors, feeds: []string{"rdma_port_global_pause_frames rx"}},
	{key: "tx_pause_frames", tier: Errors, feeds: []string{"rdma_port_global_pause_frames tx"}},
	{key: "link_down_events", tier: Errors, feeds: []string{"rdma_port_link_flaps"}},
	{key: "rx_stat_discard", tier: Errors, feeds: []string{"rdma_port_receive_discards"}},
	{key: "tx_stat_discard", tier: Errors, feeds: []string{"rdma_port_transmit_discards"}},
	{key: "rx_buffer_passed_threshold", tier: Errors, feeds: []string{"rdma_port_receive_buffer_pressure"}},
	{key: "rx_pcs_symbol_err", tier: Slow, feeds: []string{"rdma_port_phy_symbol_errors"}},
	{key: "rx_corrected_bits", tier: Slow, feeds: []string{"rdma_port_phy_fec_corrections"}},
	{key: "rx_fcs_err_frames", tier: Slow, feeds: []string{"rdma_port_phy_crc_errors"}},
}}

// ionicNetdev is what drivers/net/ethernet/pensando/ionic/ionic_stats.c has of
// interest for RDMA.
var ionicNetdev = set{source: driverStats, drivers: []string{"ionic"}, rows: []row{
	{key: "frames_rx_pri_#", tier: Errors, feeds: []string{"rdma_rx_pause #", "rdma_port_priority_pause_frames rx #"}},
	{key: "frames_tx_pri_#", tier: Errors, feeds: []string{"rdma_tx_pause #", "rdma_port_priority_pause_frames tx #"}},
	{key: "rx_pripause_#_1us_count", scale: 1e-6, tier: Errors, feeds: []string{"rdma_port_priority_pause_duration_seconds rx #"}},
	{key: "tx_pripause_#_1us_count", scale: 1e-6, tier: Errors, feeds: []string{"rdma_port_priority_pause_duration_seconds tx #"}},
	{key: "frames_rx_pause", tier: Errors, feeds: []string{"rdma_port_global_pause_frames rx"}},
	{key: "frames_tx_pause", tier: Errors, feeds: []string{"rdma_port_global_pause_frames tx"}},
	{key: "frames_rx_dropped", tier: Errors, feeds: []string{"rdma_port_receive_discards"}},
	{key: "link_down_count", tier: Errors, feeds: []string{"rdma_port_link_flaps"}},
	{key: "frames_rx_bad_fcs", tier: Slow, feeds: []string{"rdma_port_phy_crc_errors"}},
}}

// iceNetdev is what drivers/net/ethernet/intel/ice/ice_ethtool.c has of
// interest for RDMA. It counts XOFF frames, which stop a priority; XON frames,
// which let it go, are not counted with them.
var iceNetdev = set{source: driverStats, drivers: []string{"irdma"}, rows: []row{
	{key: "rx_priority_#_xoff.nic", tier: Errors, feeds: []string{"rdma_rx_pause #", "rdma_port_priority_pause_frames rx #"}},
	{key: "tx_priority_#_xoff.nic", tier: Errors, feeds: []string{"rdma_tx_pause #", "rdma_port_priority_pause_frames tx #"}},
	{key: "link_xoff_rx.nic", tier: Errors, feeds: []string{"rdma_port_global_pause_frames rx"}},
	{key: "link_xoff_tx.nic", tier: Errors, feeds: []string{"rdma_port_global_pause_frames tx"}},
	{key: "rx_dropped.nic", tier: Errors, feeds: []string{"rdma_port_receive_discards"}},
	{key: "tx_dropped_link_down.nic", tier: Errors, feeds: []string{"rdma_port_transmit_discards"}},
	{key: "rx_crc_errors.nic", tier: Slow, feeds: []string{"rdma_port_phy_crc_errors"}},
}}

// hnsNetdev is what drivers/net/ethernet/hisilicon/hns3 has of interest for
// RDMA.
var hnsNetdev = set{source: driverStats, drivers: []string{"hns"}, rows: []row{
	{key: "mac_rx_pfc_pri#_pkt_num", tier: Errors, feeds: []string{"rdma_rx_pause #", "rdma_port_priority_pause_frames rx #"}},
	{key: "mac_tx_pfc_pri#_pkt_num", tier: Errors, feeds: []string{"rdma_tx_pause #", "rdma_port_priority_pause_frames tx #"}},
	{key: "mac_rx_mac_pause_num", tier: Errors, feeds: []string{"rdma_port_global_pause_frames rx"}},
	{key: "mac_tx_mac_pause_num", tier: Errors, feeds: []string{"rdma_port_global_pause_frames tx"}},
	{key: "mac_rx_fcs_err_pkt_num", tier: Slow, feeds: []string{"rdma_port_phy_crc_errors"}},
}}

// standardStats are what ethtool defines for all drivers (eth-phy, eth-mac,
// pause and FEC statistics). They fill in what a driver's own statistics lack.
var standardStats = set{source: standard, rows: []row{
	{key: "SymbolErrorDuringCarrier", tier: Slow, feeds: []string{"rdma_port_phy_symbol_errors"}},
	{key: "FrameCheckSequenceErrors", tier: Slow, feeds: []string{"rdma_port_phy_crc_errors"}},
	{key: "pause_rx_frames", tier: Slow, feeds: []string{"rdma_port_global_pause_frames rx"}},
	{key: "pause_tx_frames", tier: Slow, feeds: []string{"rdma_port_global_pause_frames tx"}},
	{key: "pause_tx_storm_events", tier: Slow, feeds: []string{"rdma_port_pause_storm_events error"}},
	{key: "fec_corrected_bits", tier: Slow, feeds: []string{"rdma_port_phy_fec_corrections"}},
	{key: "fec_corrected_blocks", tier: Slow, feeds: []string{"rdma_port_phy_fec_corrected_blocks"}},
	{key: "fec_uncorrectable_blocks", tier: Slow, feeds: []string{"rdma_port_phy_fec_uncorrectable_blocks"}},
}}

// dcbStats are priority flow control over DCB (struct ieee_pfc), whose counters
// are for drivers that do not show them by ethtool.
var dcbStats = set{source: priorities, rows: []row{
	{key: "enabled_#", kind: Gauge, tier: Slow, feeds: []string{"rdma_port_pfc_enabled #"}},
	{key: "indications_#", tier: Slow, feeds: []string{"rdma_rx_pause #", "rdma_port_priority_pause_frames rx #"}},
	{key: "requests_#", tier: Slow, feeds: []string{"rdma_tx_pause #", "rdma_port_priority_pause_frames tx #"}},
}}

// vnicStats are what mlx5's vnic health reporter diagnoses
// (Documentation/networking/devlink/mlx5.rst).
var vnicStats = set{source: vnic, drivers: []string{"mlx5"}, rows: []row{
	{key: "total_error_queues", name: "rdma_vnic_total_error_queues", kind: Gauge, scope: WholeDevice, tier: Slow, help: "Queues in an error state because of an asynchronous error or an erroneous command."},
	{key: "send_queue_priority_update_flow", name: "rdma_vnic_send_queue_priority_update_flow", bits: 32, scope: WholeDevice, tier: Slow, help: "Times the priority or service level of a send queue was updated."},
	{key: "cq_overrun", name: "rdma_vnic_cq_overrun", bits: 32, scope: WholeDevice, tier: Slow, help: "Times a completion queue went into error because it overflowed: the application did not poll in time."},
	{key: "async_eq_overrun", name: "rdma_vnic_async_eq_overrun", bits: 32, scope: WholeDevice, tier: Slow, help: "Times an event queue of asynchronous events overran."},
	{key: "comp_eq_overrun", name: "rdma_vnic_comp_eq_overrun", bits: 32, scope: WholeDevice, tier: Slow, help: "Times an event queue of completions overran."},
	{key: "quota_exceeded_command", name: "rdma_vnic_quota_exceeded_command", bits: 32, scope: WholeDevice, tier: Slow, help: "Commands that failed because the function had used up its quota."},
	{key: "invalid_command", name: "rdma_vnic_invalid_command", bits: 32, scope: WholeDevice, tier: Slow, help: "Commands that failed for a reason other than the quota."},
	{key: "nic_receive_steering_discard", name: "rdma_vnic_nic_receive_steering_discard", scope: WholeDevice, tier: Slow, help: "Packets that passed receive steering and were discarded for want of a rule, or because the counter of a flow was off."},
	{key: "generated_pkt_steering_fail", name: "rdma_vnic_generated_pkt_steering_fail", scope: WholeDevice, tier: Slow, help: "Packets generated by the function itself that met an unexpected steering failure."},
	{key: "handled_pkt_steering_fail", name: "rdma_vnic_handled_pkt_steering_fail", scope: WholeDevice, tier: Slow, help: "Packets handled by the function that met an unexpected steering failure."},
	{key: "icm_consumption", name: "rdma_vnic_icm_consumption_bytes", kind: Gauge, scale: 4096, scope: WholeDevice, tier: Slow, help: "Host memory that the card uses for its contexts on behalf of this function; the kernel counts pages of 4 KiB."},
	{key: "bar_uar_access", name: "rdma_vnic_bar_uar_access", scope: WholeDevice, tier: Slow, help: "Reads and writes of the function's doorbell pages."},
	{key: "odp_local_triggered_page_fault", name: "rdma_vnic_odp_local_triggered_page_fault", scope: WholeDevice, tier: Slow, help: "Page faults of on-demand paging that our own requests raised."},
	{key: "odp_remote_triggered_page_fault", name: "rdma_vnic_odp_remote_triggered_page_fault", scope: WholeDevice, tier: Slow, help: "Page faults of on-demand paging that requests of peers raised."},
}}
