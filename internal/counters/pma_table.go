package counters

// portData are the counters of a port that the InfiniBand specification calls
// extended: 64 bits, data in words of four bytes. mlx4 and mlx5 have them for
// RoCE too.
var portData = set{source: portFiles, raw: true, rows: []row{
	{key: "port_rcv_data", name: "rdma_port_rcv_data_bytes", scale: 4, tier: Traffic, feeds: []string{"rdma_port_receive_bytes"}, help: "Bytes received by the port, link headers excluded; the kernel counts words of four bytes."},
	{key: "port_xmit_data", name: "rdma_port_xmit_data_bytes", scale: 4, tier: Traffic, feeds: []string{"rdma_port_transmit_bytes"}, help: "Bytes sent by the port, link headers excluded; the kernel counts words of four bytes."},
	{key: "port_rcv_packets", tier: Traffic, feeds: []string{"rdma_port_receive_packets"}, help: "Packets received by the port, those with errors included."},
	{key: "port_xmit_packets", tier: Traffic, feeds: []string{"rdma_port_transmit_packets"}, help: "Packets sent by the port."},
}}

// portErrors are the other counters of an InfiniBand port. Those that are
// narrower than 64 bits stop at their largest value until somebody resets them.
var portErrors = set{source: portFiles, raw: true, rows: []row{
	{key: "unicast_rcv_packets", scope: PhysicalPort, tier: Errors, help: "Unicast packets received by the port."},
	{key: "unicast_xmit_packets", scope: PhysicalPort, tier: Errors, help: "Unicast packets sent by the port."},
	{key: "multicast_rcv_packets", scope: PhysicalPort, tier: Errors, help: "Multicast packets received by the port."},
	{key: "multicast_xmit_packets", scope: PhysicalPort, tier: Errors, help: "Multicast packets sent by the port."},
	{key: "port_xmit_wait", bits: 32, saturates: true, scope: PhysicalPort, tier: Errors, help: "Ticks during which the port had data to send and no credit of the peer to send it: congestion."},
	{key: "port_xmit_discards", bits: 16, saturates: true, scope: PhysicalPort, tier: Errors, feeds: []string{"rdma_port_transmit_discards"}, help: "Packets that the port discarded in place of sending them, because it was down or congested."},
	{key: "port_rcv_errors", bits: 16, saturates: true, scope: PhysicalPort, tier: Errors, help: "Packets received with an error: physical, of form, or for want of buffers."},
	{key: "port_rcv_remote_physical_errors", bits: 16, saturates: true, scope: PhysicalPort, tier: Errors, help: "Packets received that an earlier switch had marked as bad: look for the fault further away."},
	{key: "port_rcv_switch_relay_errors", bits: 16, saturates: true, scope: PhysicalPort, tier: Errors, help: "Packets received that a switch could not pass on."},
	{key: "port_rcv_constraint_errors", bits: 8, saturates: true, scope: PhysicalPort, tier: Errors, help: "Packets received that the partition or other rules of the port forbid."},
	{key: "port_xmit_constraint_errors", bits: 8, saturates: true, scope: PhysicalPort, tier: Errors, help: "Packets not sent because the partition or other rules of the port forbid them."},
	{key: "symbol_error", bits: 16, saturates: true, scope: PhysicalPort, tier: Errors, help: "Minor link errors found on one or more lanes: a bad cable or transceiver."},
	{key: "link_error_recovery", bits: 8, saturates: true, scope: PhysicalPort, tier: Errors, help: "Times the port recovered its link without taking it down."},
	{key: "link_downed", bits: 8, saturates: true, scope: PhysicalPort, tier: Errors, feeds: []string{"rdma_port_link_flaps"}, help: "Times the link went down because it could not be recovered."},
	{key: "local_link_integrity_errors", bits: 4, saturates: true, scope: PhysicalPort, tier: Errors, help: "Times local physical errors were more than the link's threshold."},
	{key: "excessive_buffer_overrun_errors", bits: 4, saturates: true, scope: PhysicalPort, tier: Errors, help: "Times receive buffers overran in several flow control periods one after another."},
	{key: "VL15_dropped", bits: 16, saturates: true, scope: PhysicalPort, tier: Errors, help: "Subnet management packets dropped for want of buffers."},
}}
