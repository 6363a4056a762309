package boards

import "railhead/hack/dashboards/grafana"

// clusterBoard answers: is the fabric well, who uses it, and which rail of
// which node is different from the others?
func clusterBoard() Board {
	return Board{
		File: "rdma-cluster", UID: "railhead-rdma-cluster", Title: "RDMA / Cluster", Range: "3h", Refresh: "1m",
		About:     "RDMA of the whole cluster: what there is, how much of it is used and by whom, and where it is congested or broken.",
		Variables: []grafana.Variable{clusterVariable(), railVariable(inCluster)},
		Rows: []Row{
			{"Summary", clusterSummary()},
			{"Throughput", clusterThroughput()},
			{"Rails", clusterRails()},
			{"Hotspots", clusterHotspots()},
			{"Congestion by node and physical port", clusterCongestion()},
			{"Reliability", clusterReliability()},
			{"Pods", clusterPods()},
			{"Exporter", clusterExporter()},
		},
	}
}

func clusterSummary() []Panel {
	number := func(title, about, expr string, steps []grafana.Step) Panel {
		return Panel{Title: title, About: about, Kind: Stat, Unit: count, Width: 3, Height: 4, Steps: steps, Queries: []Query{{title, expr}}}
	}
	s := inCluster
	counted := func(by, name string) string {
		return "count(count by (" + by + ") (" + s.series(name) + ")) or vector(0)"
	}
	return []Panel{
		number("Nodes with RDMA", "Nodes that have an RDMA device, whether a pod uses it or not.", counted(byNode, "rdma_device_info"), nil),
		number("Nodes with RDMA pods", "Nodes on which a pod holds or uses an RDMA device.", counted(byNode, "rdma_pod_device_info"), nil),
		number("Workloads", "Topmost owners (Job, Deployment, RayCluster …) whose pods hold or use RDMA devices; a pod without an owner is one of its own.",
			counted(byWorkload, "rdma_pod_device_info"), nil),
		number("Pods", "Pods that hold or use RDMA devices, by namespace and name.", counted(byPod, "rdma_pod_device_info"), nil),
		number("Ports active", "Ports of physical functions that are up.",
			"sum("+s.series("rdma_port_state", `state="ACTIVE"`)+" and on (cluster, instance, device, port) "+s.series("rdma_port_info", `function="pf"`)+")", nil),
		number("Ports not active", "Ports of physical functions that are not up. Ports without a cable count too: see which ones on the dashboard of the node.",
			"sum(1 - "+s.series("rdma_port_state", `state="ACTIVE"`)+" and on (cluster, instance, device, port) "+s.series("rdma_port_info", `function="pf"`)+")", steps("green", from(1, "orange"))),
		number("Connections lost, 1 h", "Queue pairs that reached their retry limit within the last hour. Each is a connection lost, which ends most collective jobs.",
			"sum(increase("+s.series("rdma_port_retries_exceeded_total")+"[1h])) or vector(0)", badIfAny()),
		number("Alerts firing", "Firing alerts of the rules that come with this dashboard.",
			"count(ALERTS{"+string(s)+`, alertname=~"RDMA.+", alertstate="firing"}) or vector(0)`, badIfAny()),
	}
}

func clusterThroughput() []Panel {
	s := inCluster
	total := both("throughput in total", "", func(verb, direction string) Panel {
		return Panel{
			About: verb + " by all RDMA devices together. Each function counts once: physical functions, and virtual ones whether on the host or in a pod.",
			Unit:  bitsPerSecond, Width: 12, Queries: []Query{{verb + " {{cluster}}", bits(s.functions("cluster", s.rate("rdma_port_"+direction+"_bytes")))}},
		}
	})
	nodes := both("throughput", " by node", func(verb, direction string) Panel {
		return Panel{
			About: verb + " by all RDMA devices of a node, each function once.",
			Unit:  bitsPerSecond, Width: 12, Queries: []Query{{"{{instance}}", bits(s.functions(byNode, s.rate("rdma_port_"+direction+"_bytes")))}},
		}
	})
	use := both("utilisation", " by node", func(_, direction string) Panel {
		return Panel{
			About: "Traffic of all functions of a node's physical ports, divided by the sum of the speeds of those ports.",
			Unit:  ratio, Width: 12, Queries: []Query{{"{{instance}}", sum(byNode, s.ports(s.rate("rdma_port_"+direction+"_bytes"))) + " / " + sum(byNode, s.portSpeed())}},
		}
	})
	return join(total, nodes, use)
}

func clusterRails() []Panel {
	s := inCluster
	use := s.busier("cluster, instance, rail")
	pause := highest("cluster, instance, rail", s.ports(s.pauseOccupancy(), "direction", "priority"))
	return []Panel{
		{
			Title: "Utilisation now, node × rail", Kind: Matrix, Unit: ratio, Width: 12, Height: 9, Steps: used(), Down: "instance", Across: "rail",
			About:   "The busier direction of each port as a part of its speed. In a healthy job all cells look alike; a cell that differs from its line is a rail, a line that differs is a node.",
			Queries: []Query{{"", use}},
		},
		{
			Title: "Paused now, node × rail", Kind: Matrix, Unit: ratio, Width: 12, Height: 9, Steps: paused(), Down: "instance", Across: "rail",
			About:   "Part of the time in which priority flow control held the port, in the worse of its directions and priorities. A column is a switch that cannot drain, a single cell a host that cannot.",
			Queries: []Query{{"", pause}},
		},
		{
			Title: "Utilisation over time, node × rail", Kind: History, Unit: ratio, Width: 12, Height: 12, Steps: used(),
			About:   "The busier direction of each port as a part of its speed. Look for the line that turns pale before the others: that rail holds the job up.",
			Queries: []Query{{"{{instance}} · rail {{rail}}", use}},
		},
		{
			Title: "Paused over time, node × rail", Kind: History, Unit: ratio, Width: 12, Height: 12, Steps: paused(),
			About:   "Part of the time in which priority flow control held the port, in the worse of its directions and priorities.",
			Queries: []Query{{"{{instance}} · rail {{rail}}", pause}},
		},
	}
}

func clusterHotspots() []Panel {
	s := inCluster
	var all []Panel
	for _, by := range []struct{ title, legend, labels, stage string }{
		{"node", "{{instance}}", byNode, "port"},
		{"pod", "{{pod_namespace}}/{{pod_name}}", byPod, "pod"},
		{"workload", "{{owner_kind}} {{owner_namespace}}/{{owner_name}}", byWorkload, "pod"},
	} {
		all = append(all, both("throughput", " by "+by.title+" (top 10)", func(_, direction string) Panel {
			traffic := sum(by.labels, s.rate("rdma_pod_"+direction+"_bytes"))
			if by.stage == "port" {
				traffic = s.functions(by.labels, s.rate("rdma_port_"+direction+"_bytes"))
			}
			return Panel{
				About: "The ten busiest at each moment. Traffic of pods is known where a device or its queue pairs are one pod's alone.",
				Unit:  bitsPerSecond, Width: 12, Queries: []Query{{by.legend, bits(top(10, traffic))}},
			}
		})...)
	}
	return all
}

func clusterCongestion() []Panel {
	s := inCluster
	legend := "{{instance}} {{pf_device}}"
	port := func(title, family, about string, matchers ...string) Panel {
		return Panel{
			Title: title, Family: family, About: about, Unit: packetsPerSecond,
			Queries: []Query{{legend, top(20, s.ports(s.rate(family, matchers...)))}},
		}
	}
	return []Panel{
		port("Read pause by node PF", "rdma_port_priority_pause_frames", "Received: the switch asks this node to stop, because the fabric behind it is full.", `direction="rx"`),
		port("Write pause by node PF", "rdma_port_priority_pause_frames", "Sent: this node asks the switch to stop, because it cannot drain what it receives.", `direction="tx"`),
		{
			Title: "Read pause time by node PF", Family: "rdma_port_priority_pause_duration_seconds", Unit: ratio,
			About:   "Part of the time in which the switch held this port.",
			Queries: []Query{{legend + " priority {{priority}}", top(20, s.ports(s.pauseOccupancy(`direction="rx"`), "priority"))}},
		},
		{
			Title: "Write pause time by node PF", Family: "rdma_port_priority_pause_duration_seconds", Unit: ratio,
			About:   "Part of the time in which this port held the switch.",
			Queries: []Query{{legend + " priority {{priority}}", top(20, s.ports(s.pauseOccupancy(`direction="tx"`), "priority"))}},
		},
		port("Read discards by node PF", "rdma_port_priority_receive_discards", "On a lossless priority there must be none."),
		port("CNP packets sent", "rdma_port_cnp_sent", "They follow the ECN marks that this node received."),
		port("ECN marked RoCE packets", "rdma_port_ecn_marked_packets", "Marks are how a fabric slows senders down before it must pause them."),
		port("CNP packets handled", "rdma_port_cnp_handled", "This node sends into congestion and slows down. Without congestion in the fabric see slow restart on the dashboard of the node."),
		port("CNP packets ignored", "rdma_rp_cnp_ignored", "Zero, where congestion control is on."),
		port("Out of sequence", "rdma_port_out_of_sequence", "With adaptive routing some of it is normal."),
	}
}

func clusterReliability() []Panel {
	s := inCluster
	legend := "{{instance}} {{pf_device}}"
	port := func(title, family, about string) Panel {
		return Panel{Title: title, Family: family, About: about, Unit: perSecond, Queries: []Query{{legend, top(10, s.ports(s.rate(family)))}}}
	}
	retries := port("Retries exceeded (top 10)", "rdma_port_retries_exceeded", "Each is a connection lost.")
	retries.Queries = []Query{{legend + " {{reason}}", top(10, s.ports(s.rate("rdma_port_retries_exceeded"), "reason"))}}
	return []Panel{
		port("ACK timeouts (top 10)", "rdma_port_retransmit_timeouts", "The best single sign of silent loss."),
		retries,
		port("Link flaps (top 10)", "rdma_port_link_flaps", ""),
		port("ICRC errors (top 10)", "rdma_rx_icrc_encapsulated", "Anything but zero is corruption on the way, or a box that rewrites packets."),
		{
			Title: "Alerts", Kind: Table, Width: 24, Height: 8, Scenario: "sick-rail",
			About:   "Firing and pending alerts of the rules that come with this dashboard. docs/alerts.md says for each what it means and what to do.",
			Columns: []Column{{Title: "Severity", Label: "severity"}, {Title: "Alert", Label: "alertname"}, {Title: "Node", Label: "instance"}, {Title: "Device", Label: "device"}, {Title: "Workload", Label: "owner_name"}, {Title: "State", Label: "alertstate"}},
			Queries: []Query{{"", "ALERTS{" + string(s) + `, alertname=~"RDMA.+"}`}},
		},
	}
}

func clusterPods() []Panel {
	s := inCluster
	legend := "{{pod_namespace}}/{{pod_name}}"
	discards := sum("cluster, instance, device", s.rate("rdma_port_priority_receive_discards"))
	return []Panel{
		{
			Title: "Out of sequence by pod (top 10)", Family: "rdma_pod_out_of_sequence", Unit: packetsPerSecond, Width: 12,
			Queries: []Query{{legend + " {{device}}", top(10, sum(byPod+", device", s.rate("rdma_pod_out_of_sequence")))}},
		},
		{
			Title: "Read discards on the ports of pods (top 10)", Family: "rdma_port_priority_receive_discards", Unit: packetsPerSecond, Width: 12,
			About:   "A port drops for all who share it, and a virtual function does not know of it: these are the drops of the physical ports that the pod's devices are on.",
			Queries: []Query{{legend, top(10, sum(byPod, s.ownPorts()+" * on (cluster, instance, device) group_left () "+discards))}},
		},
	}
}

func clusterExporter() []Panel {
	s := inCluster
	return []Panel{
		{
			Title: "Age of the samples", Family: "rdma_exporter_sample_age_seconds", Unit: seconds,
			About:   "The oldest device of each node. Traffic is sampled every few seconds; a growing age is a device whose driver does not answer.",
			Queries: []Query{{"{{instance}}", highest(byNode, s.series("rdma_exporter_sample_age_seconds"))}},
		},
		{
			Title: "Failing collectors", Family: "rdma_exporter_collector_success", Unit: count,
			About:   "How many collectors of a node failed the last time.",
			Queries: []Query{{"{{instance}}", sum(byNode, "1 - "+s.series("rdma_exporter_collector_success"))}},
		},
		{
			Title: "Time to collect", Family: "rdma_exporter_collect_duration_seconds", Unit: seconds,
			About: "Mean, by collector, over all nodes.",
			Queries: []Query{{"{{collector}}", "sum by (collector) (rate(" + s.series("rdma_exporter_collect_duration_seconds_sum") + "[$__rate_interval])) / sum by (collector) (rate(" +
				s.series("rdma_exporter_collect_duration_seconds_count") + "[$__rate_interval]))"}},
		},
		{
			Title: "Traffic that is attributed to pods", Family: "rdma_pod_attribution_coverage_ratio", Unit: ratio,
			About:   "The least covered device of each node.",
			Queries: []Query{{"{{instance}}", "min by (" + byNode + ") (" + s.series("rdma_pod_attribution_coverage_ratio") + ")"}},
		},
	}
}
