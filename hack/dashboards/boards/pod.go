package boards

import "railhead/hack/dashboards/grafana"

// nicLegend names a NIC of a pod.
const nicLegend = "{{pod_name}} {{netdev}} {{device}}"

// byNIC is what nicLegend needs.
const byNIC = "cluster, pod_namespace, pod_name, device, netdev"

// ownDevicesOnly is said of what only whole devices count.
const ownDevicesOnly = "Of devices that the pod has for itself."

// podBoard answers: is this pod's RDMA well, and if it is slow, is it the
// application, its peers, or the port that it shares?
func podBoard() Board {
	return Board{
		File: "rdma-pod", UID: "railhead-rdma-pod", Title: "RDMA / Pod", Range: "15m", Refresh: "15s",
		About: "The RDMA devices of a pod: traffic, requests, errors by what they mean, resources, and the physical ports that it is on.",
		Variables: []grafana.Variable{
			clusterVariable(),
			grafana.LabelVariable("namespace", "Namespace", inCluster.series("rdma_pod_device_info"), "pod_namespace"),
			grafana.LabelVariable("pod", "Pod", inCluster.series("rdma_pod_device_info", `pod_namespace=~"$namespace"`), "pod_name"),
		},
		Rows: []Row{
			{"Devices", podDevices()},
			{"Throughput", podThroughput()},
			{"Requests", drawAll(requests, "rdma_pod_", nicLegend, podNIC)},
			{"Loss and order", drawAll(losses, "rdma_pod_", nicLegend, podNIC)},
			{"Failed requests", drawAll(failures, "rdma_pod_", nicLegend, podNIC)},
			{"The physical ports that the pod is on", podPorts()},
			{"Resources", podResources()},
		},
	}
}

// podNIC is the rate of a family by pod, device and netdev.
func podNIC(family string) string { return ofPod.nics(byNIC, ofPod.rate(family)) }

func podDevices() []Panel {
	s := ofPod
	return []Panel{
		{
			Title: "Attribution", Kind: Table, Width: 24, Height: 8,
			About: "The pod's devices, and how exactly its numbers are known. Of a device that several pods use at once, only resources can be told apart.",
			Columns: []Column{
				{Title: "Node", Label: "instance"},
				{Title: "Namespace", Label: "pod_namespace"},
				{Title: "Pod", Label: "pod_name"},
				{Title: "Workload", Label: "owner_name"},
				{Title: "Rail", Label: "rail"},
				{Title: "PF", Label: "pf_device"},
				{Title: "Device", Label: "device"},
				{Title: "Netdev", Label: "netdev"},
				{Title: "Attribution", Label: "attribution", Texts: attributionTexts()},
			},
			Queries: []Query{{"", s.series("rdma_pod_device_info")}},
		},
	}
}

func podThroughput() []Panel {
	s := ofPod
	traffic := both("throughput", "", func(_, direction string) Panel {
		return Panel{
			Family: "rdma_pod_" + direction + "_bytes", Unit: bitsPerSecond, Width: 12,
			Queries: []Query{{nicLegend, bits(podNIC("rdma_pod_" + direction + "_bytes"))}},
		}
	})
	use := both("throughput utilisation", "", func(_, direction string) Panel {
		return Panel{
			About: "The pod's traffic as a part of the physical port's speed. Others may share the port: see the last row for all of its traffic.",
			Unit:  ratio, Width: 12,
			Queries: []Query{{"{{pod_name}} {{device}}", sum(byPodNIC, s.rate("rdma_pod_"+direction+"_bytes")) +
				" / on (cluster, instance, device, port) group_left () " +
				highest("cluster, instance, device, port", inCluster.series("rdma_port_speed_bytes_per_second"))}},
		}
	})
	panels := join(traffic, use)
	for _, cast := range []string{"unicast", "multicast"} {
		for _, way := range []struct{ verb, dir string }{{"Read", "rx"}, {"Write", "tx"}} {
			family := "rdma_" + way.dir + "_vport_rdma_" + cast
			panels = append(panels,
				Panel{
					Title: way.verb + " " + cast + " packets", Family: family + "_packets", Unit: packetsPerSecond, About: ownDevicesOnly,
					Queries: []Query{{nicLegend, s.owned(byNIC, inCluster.rate(family+"_packets"))}},
				},
				Panel{
					Title: way.verb + " " + cast + " bytes", Family: family + "_bytes", Unit: bitsPerSecond, About: ownDevicesOnly,
					Queries: []Query{{nicLegend, bits(s.owned(byNIC, inCluster.rate(family+"_bytes")))}},
				})
		}
	}
	return panels
}

// podPorts looks from the pod at the ports of its PFs.
func podPorts() []Panel {
	s := ofPod
	legend := "{{instance}} {{device}}"
	port := func(title, family, unit, legend, labels, about string, matchers ...string) Panel {
		return Panel{
			Title: title, Family: family, Unit: unit, About: about,
			Queries: []Query{{legend, sum("cluster, instance, device"+labels, inCluster.rate(family, matchers...)) + " and on (cluster, instance, device) " + s.ownPorts()}},
		}
	}
	use := `max by (cluster, instance, device) (label_replace((` + ownPortUse("receive") + `) or (` + ownPortUse("transmit") + `), "device", "$1", "pf_device", "(.+)"))`
	return []Panel{
		{
			Title: "Port utilisation by all users", Unit: ratio,
			About:   "The busier direction of the physical port, with the traffic of all its functions, as a part of its speed.",
			Queries: []Query{{legend, use + " and on (cluster, instance, device) " + s.ownPorts()}},
		},
		port("Port paused", "rdma_port_priority_pause_duration_seconds", ratio, legend+" {{direction}} priority {{priority}}", ", direction, priority", "Part of the time; rx: held by the switch, tx: this host holds the switch."),
		port("Port discards", "rdma_port_priority_receive_discards", packetsPerSecond, legend+" priority {{priority}}", ", priority", "Drops for all who share the port."),
		port("Port CNPs handled", "rdma_port_cnp_handled", packetsPerSecond, legend, "", "The port sends into congestion and slows down."),
	}
}

// ownPortUse is the use of all ports, without the rail that the pod's
// dashboard has no variable for.
func ownPortUse(direction string) string {
	s := inCluster
	labels := "cluster, instance, pf_device, port"
	ofPort := " * on (cluster, instance, device, port) group_left (pf_device) " +
		highest("cluster, instance, device, port, pf_device", onCard(s, "rdma_port_info", `function!="rep"`))
	return `label_replace(` + sum(labels, s.rate("rdma_port_"+direction+"_bytes")+ofPort) + " / " +
		highest(labels, s.series("rdma_port_speed_bytes_per_second")+ofPort) + `, "direction", "` + direction + `", "", "")`
}

func podResources() []Panel {
	s := ofPod
	by := "cluster, pod_namespace, pod_name, device"
	legend := "{{pod_name}} {{device}}"
	return []Panel{
		{
			Title: "Queue pairs", Family: "rdma_pod_qps", Unit: count, About: "Queue pairs that stay in a state of error are connections that died.",
			Queries: []Query{{legend + " {{qp_type}} {{state}}", sum(by+", qp_type, state", s.series("rdma_pod_qps"))}},
		},
		{
			Title: "Memory regions", Family: "rdma_pod_memory_regions", Unit: count,
			Queries: []Query{{legend, sum(by, s.series("rdma_pod_memory_regions"))}},
		},
		{
			Title: "Registered memory", Family: "rdma_pod_memory_region_bytes", Unit: bytesUnit, About: "It is pinned: it cannot be swapped out.",
			Queries: []Query{{legend, sum(by, s.series("rdma_pod_memory_region_bytes"))}},
		},
		{
			Title: "Connection manager IDs and contexts", Family: "rdma_pod_cm_ids", Unit: count, About: "Beside them the open contexts: one a process and device.",
			Queries: []Query{
				{"IDs · " + legend, sum(by, s.series("rdma_pod_cm_ids"))},
				{"contexts · " + legend, sum(by, s.series("rdma_pod_contexts"))},
			},
		},
	}
}
