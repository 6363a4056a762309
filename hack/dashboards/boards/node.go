package boards

import (
	"fmt"
	"strings"

	"railhead/hack/dashboards/grafana"
)

// portLegend names a physical port.
const portLegend = "rail {{rail}} · {{pf_device}}"

// nodeBoard answers: which port of this node is slow, who uses it, and is it
// the fabric, the host or the configuration?
func nodeBoard() Board {
	return Board{
		File: "rdma-node", UID: "railhead-rdma-node", Title: "RDMA / Node", Range: "30m", Refresh: "15s",
		About:     "The RDMA devices of a node: each physical port with all its functions, who owns them, flow control, errors, optics, PCIe and configuration.",
		Variables: []grafana.Variable{clusterVariable(), nodeVariable(), railVariable(onNode)},
		Rows: []Row{
			{"Ports", nodePorts()},
			{"Throughput", nodeThroughput()},
			{"Rails", nodeRails()},
			{"Flow control: PFC, ECN, CNP", nodeFlowControl()},
			{"Requests, loss and errors of a physical port and its functions", nodeCounters()},
			{"RoCE", drawAll(roce, "rdma_", portLegend, nodePort)},
			{"Link, PHY and PCIe", nodeHardware()},
			{"Configuration (QoS)", nodeConfiguration()},
			{"Resources", nodeResources()},
		},
	}
}

// nodePort is the rate of a family by physical port.
func nodePort(family string) string { return onNode.ports(onNode.rate(family)) }

func nodePorts() []Panel {
	s := onNode
	return []Panel{
		{
			Title: "Ports not active", Kind: Table, Width: 8, Height: 8, Scenario: "sick-rail",
			About:   "Ports of this node's functions that are not up. A port without a cable stands here too.",
			Columns: []Column{{Title: "Node", Label: "instance"}, {Title: "Device", Label: "device"}, {Title: "Netdev", Label: "netdev"}, {Title: "State", Label: "state"}},
			Queries: []Query{{"", s.series("rdma_port_state", `state!="ACTIVE"`) + " == 1"}},
		},
		{
			Title: "Whose functions are", Kind: Table, Width: 16, Height: 8,
			About: "Every device that a pod holds or uses, and how exactly its numbers are known.",
			Columns: []Column{
				{Title: "Rail", Label: "rail"},
				{Title: "PF", Label: "pf_device"},
				{Title: "Device", Label: "device"},
				{Title: "Netdev", Label: "netdev"},
				{Title: "Namespace", Label: "pod_namespace"},
				{Title: "Pod", Label: "pod_name"},
				{Title: "Workload", Label: "owner_name"},
				{Title: "Attribution", Label: "attribution", Texts: attributionTexts()},
			},
			Queries: []Query{{"", s.series("rdma_pod_device_info", `rail=~"$rail"`)}},
		},
	}
}

func nodeThroughput() []Panel {
	s := onNode
	use := both("utilisation", " by physical port", func(_, direction string) Panel {
		return Panel{
			About: "Traffic of the physical function and all its virtual functions, divided by the speed of their port.",
			Unit:  ratio, Width: 12, Queries: []Query{{portLegend, s.portUse(direction)}},
		}
	})
	device := both("throughput", " by host device", func(_, direction string) Panel {
		return Panel{
			About: "Each function by itself; a physical function's own traffic does not hold that of its virtual ones. Functions that are in a pod are counted here too.",
			Unit:  bitsPerSecond, Width: 12, Stacked: true,
			Queries: []Query{{"{{netdev}} {{device}}", bits(sum(byDevice, s.rate("rdma_port_"+direction+"_bytes")))}},
		}
	})
	pod := both("throughput", " by pod device", func(_, direction string) Panel {
		return Panel{
			About: "Traffic of each pod on each device, where it can be told apart.",
			Unit:  bitsPerSecond, Width: 12, Stacked: true,
			Queries: []Query{{"{{pod_namespace}}/{{pod_name}} {{device}}", bits(sum(byPodNIC, s.rate("rdma_pod_"+direction+"_bytes")))}},
		}
	})
	return join(use, device, pod)
}

func nodeRails() []Panel {
	s := onNode
	return []Panel{
		{
			Title: "Utilisation over time by rail", Kind: History, Unit: ratio, Width: 12, Height: 8, Steps: used(),
			About:   "The busier direction of each port as a part of its speed.",
			Queries: []Query{{portLegend, s.busier("cluster, instance, rail, pf_device")}},
		},
		{
			Title: "Paused over time by rail", Kind: History, Unit: ratio, Width: 12, Height: 8, Steps: paused(),
			About:   "Part of the time in which priority flow control held the port, in the worse of its directions and priorities.",
			Queries: []Query{{portLegend, highest("cluster, instance, rail, pf_device", s.ports(s.pauseOccupancy(), "direction", "priority"))}},
		},
	}
}

func nodeFlowControl() []Panel {
	s := onNode
	priority := func(title, family, unit, about string, matchers ...string) Panel {
		return Panel{
			Title: title, Family: family, About: about, Unit: unit,
			Queries: []Query{{portLegend + " priority {{priority}}", s.ports(s.rate(family, matchers...), "priority")}},
		}
	}
	port := func(title, family, about string) Panel {
		return Panel{Title: title, Family: family, About: about, Unit: packetsPerSecond, Queries: []Query{{portLegend, nodePort(family)}}}
	}
	return []Panel{
		priority("Read pause by priority", "rdma_port_priority_pause_frames", packetsPerSecond, "Received: the switch asks this port to stop.", `direction="rx"`),
		priority("Write pause by priority", "rdma_port_priority_pause_frames", packetsPerSecond, "Sent: this port asks the switch to stop.", `direction="tx"`),
		priority("Read pause time by priority", "rdma_port_priority_pause_duration_seconds", ratio, "Part of the time in which the switch held this port. From 5 % on it is seen in a job's speed.", `direction="rx"`),
		priority("Write pause time by priority", "rdma_port_priority_pause_duration_seconds", ratio, "Part of the time in which this port held the switch: memory, PCIe or the CPU's caches are too slow.", `direction="tx"`),
		priority("Read discards by priority", "rdma_port_priority_receive_discards", packetsPerSecond, "On a lossless priority there must be none."),
		priority("Read bytes by priority", "rdma_port_priority_receive_bytes", bytesPerSecond, "RDMA on a priority that is not lossless is a configuration to mend."),
		priority("Write bytes by priority", "rdma_port_priority_transmit_bytes", bytesPerSecond, "RDMA on a priority that is not lossless is a configuration to mend."),
		port("Packets dropped on the way out", "rdma_port_transmit_discards", ""),
		port("CNP packets sent by device", "rdma_port_cnp_sent", "Fewer than the marked packets, because a device waits between two."),
		port("ECN marked RoCEv2 packets by device", "rdma_port_ecn_marked_packets", ""),
		port("CNP packets handled by device", "rdma_port_cnp_handled", "Compare with slow restart below, which makes CNPs of its own."),
		port("CNP packets ignored by device", "rdma_rp_cnp_ignored", "Zero, where congestion control is on."),
	}
}

func nodeCounters() []Panel {
	return join(
		drawAll(requests, "rdma_", portLegend, nodePort),
		drawAll(losses, "rdma_", portLegend, nodePort),
		drawAll(failures, "rdma_", portLegend, nodePort),
		[]Panel{{
			Title: "Retries exceeded", Family: "rdma_port_retries_exceeded", About: "Each is a connection lost.", Unit: perSecond,
			Queries: []Query{{portLegend + " {{reason}}", onNode.ports(onNode.rate("rdma_port_retries_exceeded"), "reason")}},
		}, {
			Title: "Connections refused or repeated", Family: "rdma_port_cm_messages", Unit: perSecond,
			About: "Rejections received and connection requests sent again: failed connects. Jobs that connect without the connection manager leave no trace here.",
			Queries: []Query{
				{"rejected · " + portLegend, onNode.ports(onNode.rate("rdma_port_cm_messages", `direction="rx"`, `type="rej"`))},
				{"repeated · " + portLegend, onNode.ports(onNode.rate("rdma_port_cm_retries", `type="req"`))},
			},
		}},
	)
}

func nodeHardware() []Panel {
	s := onNode
	port := func(title, family, about string) Panel {
		return Panel{Title: title, Family: family, About: about, Unit: perSecond, Queries: []Query{{portLegend, nodePort(family)}}}
	}
	return []Panel{
		port("Link flaps", "rdma_port_link_flaps", ""),
		port("Symbol errors", "rdma_port_phy_symbol_errors", "Clean the optics, then change cable or module."),
		port("Bits corrected by FEC", "rdma_port_phy_fec_corrections", "Some are normal; compare with the other rails."),
		port("CRC errors", "rdma_port_phy_crc_errors", ""),
		port("ICRC errors", "rdma_rx_icrc_encapsulated", "Anything but zero is corruption on the way, or a box that rewrites packets."),
		port("Receive buffer almost full", "rdma_port_receive_buffer_pressure", ""),
		{
			Title: "PCIe stalled", Family: "rdma_device_pcie_stall_seconds", Unit: ratio,
			About:   "Part of the time.",
			Queries: []Query{{portLegend + " {{direction}}", s.ports(s.rate("rdma_device_pcie_stall_seconds"), "direction")}},
		},
		{
			Title: "PCIe buffer overflows", Family: "rdma_device_pcie_buffer_overflow", Unit: packetsPerSecond,
			Queries: []Query{{portLegend, nodePort("rdma_device_pcie_buffer_overflow")}},
		},
	}
}

func nodeConfiguration() []Panel {
	s := onNode
	by := "cluster, instance, device"
	pfs := " and on (cluster, instance, device, port) " + s.series("rdma_port_info", `function="pf"`, `rail=~"$rail"`)
	value := func(name string, matchers ...string) string { return highest(by, s.series(name, matchers...)+pfs) }
	return []Panel{
		{
			Title: "Configuration of physical ports", Kind: Table, Width: 24, Height: 8,
			About: "All ports of a rail, and all rails of a job, should stand here with equal values. The PFC mask has a bit for each priority that is lossless: 0x8 is priority 3.",
			Columns: []Column{
				{Title: "Node", Label: "instance"},
				{Title: "Device", Label: "device"},
				{Title: "Rail", Label: "rail"},
				{Title: "Netdev", Label: "netdev"},
				{Title: "Link layer", Label: "link_layer"},
				{Title: "Firmware", Label: "fw_version"},
				{Title: "Trust", Label: "mode"},
				{Title: "Speed", Value: "A", Unit: "Bps"},
				{Title: "MTU", Value: "B", Unit: count},
				{Title: "PFC mask", Value: "C", Unit: "hex0x"},
				{Title: "ECN priorities", Value: "D", Unit: count},
				{Title: "Traffic class", Value: "E", Unit: count},
			},
			Queries: []Query{
				{"", value("rdma_port_speed_bytes_per_second")},
				{"", value("rdma_port_mtu_bytes", `kind="active"`)},
				{"", sum(by, pfcBits(s)+pfs)},
				{"", sum(by, s.series("rdma_port_ecn_enabled", `role="np"`)+pfs)},
				{"", value("rdma_port_traffic_class")},
				{"", highest(by+", mode", s.series("rdma_port_trust_mode")+pfs)},
				{"", highest(by+", fw_version", s.series("rdma_device_info")+" and on (cluster, instance, device) "+s.series("rdma_port_info", `function="pf"`, `rail=~"$rail"`))},
				{"", highest(by+", rail, netdev, link_layer", s.series("rdma_port_info", `function="pf"`, `rail=~"$rail"`))},
			},
		},
		{
			Title: "Traffic class", Kind: Table, Width: 24, Height: 6, Family: "rdma_port_traffic_class",
			About: "Of all functions; 106 is DSCP 26 with ECN.",
			Columns: []Column{
				{Title: "Node", Label: "instance"},
				{Title: "Device", Label: "device"},
				{Title: "Netdev", Label: "netdev"},
				{Title: "Traffic class", Value: "A", Unit: count},
			},
			Queries: []Query{{"", highest(byDevice, s.series("rdma_port_traffic_class"))}},
		},
	}
}

// pfcBits gives each priority with PFC the value of its bit in a mask.
func pfcBits(s scope) string {
	var bits []string
	for priority := range 8 {
		bits = append(bits, fmt.Sprintf("%s * %d", s.series("rdma_port_pfc_enabled", fmt.Sprintf("priority=%q", fmt.Sprint(priority))), 1<<priority))
	}
	return "(" + strings.Join(bits, " or ") + ")"
}

func nodeResources() []Panel {
	s := onNode
	owner := "{{pod_namespace}}/{{pod_name}} {{device}}"
	return []Panel{
		{
			Title: "Objects in use by device", Family: "rdma_device_resources", Unit: count, About: "Queue pairs, completion queues, memory regions and so on, of all processes.",
			Queries: []Query{{"{{device}} {{type}}", top(30, s.series("rdma_device_resources"))}},
		},
		{
			Title: "Queue pairs by pod", Family: "rdma_pod_qps", Unit: count, Stacked: true,
			Queries: []Query{{owner, sum("cluster, instance, pod_namespace, pod_name, device", s.series("rdma_pod_qps"))}},
		},
		{
			Title: "Memory regions by pod", Family: "rdma_pod_memory_regions", Unit: count, Stacked: true,
			Queries: []Query{{owner, sum("cluster, instance, pod_namespace, pod_name, device", s.series("rdma_pod_memory_regions"))}},
		},
		{
			Title: "Registered memory by pod", Family: "rdma_pod_memory_region_bytes", Unit: bytesUnit, Stacked: true, About: "It is pinned: it cannot be swapped out.",
			Queries: []Query{{owner, sum("cluster, instance, pod_namespace, pod_name, device", s.series("rdma_pod_memory_region_bytes"))}},
		},
	}
}
