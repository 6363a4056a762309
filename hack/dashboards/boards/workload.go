package boards

import "railhead/hack/dashboards/grafana"

// workloadBoard answers: which pod or rail holds this job up?
func workloadBoard() Board {
	info := "rdma_pod_device_info"
	return Board{
		File: "rdma-workload", UID: "railhead-rdma-workload", Title: "RDMA / Workload", Range: "1h", Refresh: "30s",
		About: "RDMA of a workload (Job, Deployment, RayCluster …) by pod and rail: where its traffic is uneven, and what errors its pods see.",
		Variables: []grafana.Variable{
			clusterVariable(),
			grafana.LabelVariable("kind", "Kind", inCluster.series(info), "owner_kind"),
			grafana.LabelVariable("namespace", "Namespace", inCluster.series(info, `owner_kind=~"$kind"`), "owner_namespace"),
			grafana.LabelVariable("name", "Name", inCluster.series(info, `owner_kind=~"$kind"`, `owner_namespace=~"$namespace"`), "owner_name"),
			railVariable(inCluster),
		},
		Rows: []Row{
			{"Summary", workloadSummary()},
			{"Rails", workloadRails()},
			{"Pods", workloadPods()},
			{"Errors", workloadErrors()},
		},
	}
}

func workloadSummary() []Panel {
	s := ofWorkload
	return both("throughput", " by workload", func(verb, direction string) Panel {
		return Panel{
			About: verb + " by all pods of a workload, where their traffic can be told apart.",
			Unit:  bitsPerSecond, Width: 12,
			Queries: []Query{{"{{owner_kind}} {{owner_namespace}}/{{owner_name}}", bits(sum(byWorkload, s.rate("rdma_pod_"+direction+"_bytes")))}},
		}
	})
}

// railTraffic is what pods write, by the rail of their devices.
func railTraffic(by string) string {
	s := ofWorkload
	return sum(by, s.rate("rdma_pod_transmit_bytes")+" * on (cluster, instance, pod_namespace, pod_name, device) group_left (rail) "+
		highest("cluster, instance, pod_namespace, pod_name, device, rail", s.series("rdma_pod_device_info", `rail=~"$rail"`)))
}

func workloadRails() []Panel {
	s := ofWorkload
	speed := highest("cluster, instance, device, port", inCluster.series("rdma_port_speed_bytes_per_second"))
	use := sum(byPodNIC, s.rate("rdma_pod_transmit_bytes")) + " / on (cluster, instance, device, port) group_left () " + speed
	cells := "(" + use + ") * on (cluster, instance, pod_namespace, pod_name, device) group_left (rail) " +
		highest("cluster, instance, pod_namespace, pod_name, device, rail", s.series("rdma_pod_device_info", `rail=~"$rail"`))
	byDevice := sum(byWorkload+", pod_namespace, pod_name, device", s.rate("rdma_pod_transmit_bytes"))
	return []Panel{
		{
			Title: "Rails over time, pod × rail", Kind: History, Unit: ratio, Width: 14, Height: 12, Steps: used(),
			About:   "What each pod writes on each rail, as a part of the port's speed. A job waits for its slowest rail: look for the line that turns pale first.",
			Queries: []Query{{"{{pod_name}} · rail {{rail}}", highest("cluster, pod_namespace, pod_name, rail", cells)}},
		},
		{
			Title: "Rails now, pod × rail", Kind: Matrix, Unit: ratio, Width: 10, Height: 12, Steps: used(), Down: "pod_name", Across: "rail",
			About:   "The same, now.",
			Queries: []Query{{"", highest("pod_name, rail", cells)}},
		},
		{
			Title: "Write throughput by rail", Unit: bitsPerSecond, Width: 8,
			About:   "All pods of the workload together, by rail.",
			Queries: []Query{{"rail {{rail}}", bits(railTraffic("cluster, rail"))}},
		},
		{
			Title: "Imbalance of rails", Unit: ratio, Width: 8,
			About: "The difference between the busiest and the idlest device of the workload, as a part of their mean. Near 0 % in a job whose pods do the same; above 50 % something holds a rail up, or pods have different parts to play.",
			Queries: []Query{{
				"{{owner_kind}} {{owner_namespace}}/{{owner_name}}",
				"(" + highest(byWorkload, byDevice) + " - min by (" + byWorkload + ") (" + byDevice + ")) / (avg by (" + byWorkload + ") (" + byDevice + ") > 0)",
			}},
		},
		{
			Title: "Slowest pods", Unit: bitsPerSecond, Width: 8,
			About:   "The ten pods that write least.",
			Queries: []Query{{"{{pod_name}}", bits("bottomk(10, " + sum(byPod, s.rate("rdma_pod_transmit_bytes")) + ")")}},
		},
	}
}

func workloadPods() []Panel {
	s := ofWorkload
	legend := "{{pod_namespace}}/{{pod_name}}"
	panels := both("throughput", " by pod", func(_, direction string) Panel {
		return Panel{
			Family: "rdma_pod_" + direction + "_bytes", Unit: bitsPerSecond, Width: 12, Stacked: true,
			Queries: []Query{{legend, bits(sum(byPod, s.rate("rdma_pod_"+direction+"_bytes")))}},
		}
	})
	pod := func(title, family string) Panel {
		return Panel{
			Title: title, Family: family, About: ownDevicesOnly, Unit: packetsPerSecond,
			Queries: []Query{{legend, s.owned(byPod, inCluster.rate(family))}},
		}
	}
	return append(panels,
		pod("Unicast read packets", "rdma_rx_vport_rdma_unicast_packets"),
		pod("Unicast written packets", "rdma_tx_vport_rdma_unicast_packets"),
		pod("Multicast read packets", "rdma_rx_vport_rdma_multicast_packets"),
		pod("Multicast written packets", "rdma_tx_vport_rdma_multicast_packets"),
	)
}

func workloadErrors() []Panel {
	s := ofWorkload
	legend := "{{pod_namespace}}/{{pod_name}} {{device}}"
	pod := func(title, name, about string) Panel {
		return Panel{
			Title: title, Family: "rdma_pod_" + name, About: about, Unit: packetsPerSecond,
			Queries: []Query{{legend, sum(byPod+", device", s.rate("rdma_pod_"+name))}},
		}
	}
	columns := []Column{{Title: "Namespace", Label: "pod_namespace"}, {Title: "Pod", Label: "pod_name"}}
	var queries []Query
	for i, c := range []struct{ title, name string }{
		{"ACK timeouts", "retransmit_timeouts"},
		{"Sequence NAKs", "sequence_nak_received"},
		{"Out of sequence", "out_of_sequence"},
		{"Receiver not ready", "rnr_nak_received"},
		{"Out of buffer", "out_of_buffer"},
		{"Request errors", "req_cqe_error"},
		{"Response errors", "resp_cqe_error"},
	} {
		columns = append(columns, Column{Title: c.title, Value: letter(i), Unit: count})
		queries = append(queries, Query{"", sum(byPod, "increase("+s.series("rdma_pod_"+c.name+"_total")+"[$__range])")})
	}
	return []Panel{
		pod("Packets out of sequence", "out_of_sequence", "With adaptive routing some of it is normal."),
		pod("Packet sequence errors", "sequence_nak_received", "The peer saw a gap: loss on the way there."),
		pod("ACK timeouts", "retransmit_timeouts", "The best single sign of silent loss."),
		pod("Receiver not ready", "rnr_nak_received", "The peer's application posts too few receives."),
		{
			Title: "Errors of each pod in this time range", Kind: Table, Width: 24, Height: 9,
			About:   "Sort by a column: the pod with the most ACK timeouts and sequence NAKs is behind the bad link; the one with the most receivers not ready waits for a slow application.",
			Columns: columns, Queries: queries,
		},
	}
}
