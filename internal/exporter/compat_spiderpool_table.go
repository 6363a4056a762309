package exporter

import "railhead/internal/counters"

// The traffic class of a device, and the family of ours with the same value.
const (
	spiderpoolTOS       = "rdma_device_tos"
	spiderpoolTOSSource = "rdma_port_traffic_class"
)

// spiderpoolFamilies are families that only Spiderpool has, or has with another
// type. Both are counters there, although neither counts.
var spiderpoolFamilies = []*counters.Family{
	{Name: "rdma_vport_speed_mbps", Kind: counters.Counter, Tier: counters.Slow, Help: "Link speed in megabits a second. It is no counter, but one in Spiderpool; rdma_port_speed_bytes_per_second is better."},
	{Name: spiderpoolTOS, Kind: counters.Counter, Tier: counters.Slow, Help: "Traffic class of all RoCE traffic of the device. It is no counter, but one in Spiderpool; rdma_port_traffic_class is better."},
}

// spiderpoolCounters are the families that both have under the same name,
// beside those with vport in their name.
var spiderpoolCounters = []string{
	"rdma_rx_write_requests",
	"rdma_rx_read_requests",
	"rdma_rx_atomic_requests",
	"rdma_rx_dct_connect",
	"rdma_out_of_buffer",
	"rdma_out_of_sequence",
	"rdma_duplicate_request",
	"rdma_rnr_nak_retry_err",
	"rdma_packet_seq_err",
	"rdma_implied_nak_seq_err",
	"rdma_local_ack_timeout_err",
	"rdma_resp_local_length_error",
	"rdma_resp_cqe_error",
	"rdma_req_cqe_error",
	"rdma_req_remote_invalid_request",
	"rdma_req_remote_access_errors",
	"rdma_resp_remote_access_errors",
	"rdma_resp_cqe_flush_error",
	"rdma_req_cqe_flush_error",
	"rdma_roce_adp_retrans",
	"rdma_roce_adp_retrans_to",
	"rdma_roce_slow_restart",
	"rdma_roce_slow_restart_cnps",
	"rdma_roce_slow_restart_trans",
	"rdma_rp_cnp_ignored",
	"rdma_rp_cnp_handled",
	"rdma_np_ecn_marked_roce_packets",
	"rdma_np_cnp_sent",
	"rdma_rx_icrc_encapsulated",
	"rdma_rx_discards",
	"rdma_tx_discards",
	"rdma_rx_pause",
	"rdma_tx_pause",
}
